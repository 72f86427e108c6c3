// What is read against protobuf's own classes, on random, spliced and damaged messages.
#include "server/request/decode_predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "base/rounds_for_test.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::server {
namespace {

using tensorflow::DataType;
using tensorflow::TensorProto;
using tensorflow::serving::PredictRequest;

constexpr int64_t kMaxBytes = 1 << 16;

class RandomRequest {
 public:
  explicit RandomRequest(uint64_t seed) : rng_(seed) {}

  int Below(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }

  PredictRequest Make() {
    PredictRequest request;
    auto* spec = request.mutable_model_spec();
    spec->set_name(OneIn(20) ? "m\xc3\xb6" : "model");
    if (OneIn(3)) spec->mutable_version()->set_value(Number());
    if (OneIn(10)) spec->set_version_label("stable");
    if (OneIn(2)) spec->set_signature_name("serving_default");
    for (int i = Below(4); i > 0; --i) {
      FillTensor(&(*request.mutable_inputs())["input" + std::to_string(i)]);
    }
    for (int i = Below(3); i > 0; --i) request.add_output_filter("out" + std::to_string(Below(3)));
    if (OneIn(30)) request.set_client_id("me");
    return request;
  }

  // Flips, drops, doubles or inserts bytes.
  void Damage(std::string* bytes) {
    for (int i = 1 + Below(3); i > 0 && !bytes->empty(); --i) {
      const size_t at = static_cast<size_t>(Below(static_cast<int>(bytes->size())));
      switch (Below(5)) {
        case 0:
          (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << Below(8)));
          break;
        case 1:
          (*bytes)[at] = static_cast<char>(Below(256));
          break;
        case 2:
          bytes->resize(at);
          break;
        case 3:
          bytes->insert(at, 1, static_cast<char>(Below(256)));
          break;
        default:
          bytes->erase(at, 1);
          break;
      }
    }
  }

 private:
  int64_t Number() {
    switch (Below(4)) {
      case 0:
        return Below(3);
      case 1:
        return -Below(200);
      case 2:
        return static_cast<int64_t>(rng_());
      default:
        return Below(100000);
    }
  }

  void FillTensor(TensorProto* tensor) {
    static constexpr int kTypes[] = {1,  1,  1,  2,  3,  4,  5,  6,  7, 8, 9,
                                     10, 14, 17, 18, 19, 22, 23, 20, 0, 99};
    tensor->set_dtype(static_cast<DataType>(kTypes[Below(21)]));
    int64_t elements = 1;
    for (int i = Below(3); i > 0; --i) {
      const int64_t size = OneIn(30) ? Number() : 1 + Below(4);
      auto* dim = tensor->mutable_tensor_shape()->add_dim();
      dim->set_size(size);
      if (OneIn(20)) dim->set_name("rows");
      elements *= std::clamp<int64_t>(size, 0, 5);
    }
    if (OneIn(40)) tensor->mutable_tensor_shape()->set_unknown_rank(true);
    if (OneIn(60)) tensor->set_version_number(Below(3));
    if (OneIn(3)) return SetContent(tensor, elements);
    const auto dtype = DTypeFromNumber(tensor->dtype());
    const TensorField list =
        !dtype.ok() || OneIn(25) ? static_cast<TensorField>(5 + Below(13)) : ListOf(*dtype);
    AddValues(tensor, list, OneIn(4) ? Below(5) : static_cast<int>(elements));
    if (OneIn(50)) AddValues(tensor, TensorField::kIntVal, 1);
  }

  void SetContent(TensorProto* tensor, int64_t elements) {
    const auto dtype = DTypeFromNumber(tensor->dtype());
    size_t bytes = static_cast<size_t>(elements) * (dtype.ok() ? DTypeSize(*dtype) : 1);
    if (OneIn(10)) bytes += static_cast<size_t>(Below(3));
    std::string content(bytes, '\0');
    for (char& c : content)
      c = static_cast<char>(tensor->dtype() == tensorflow::DT_BOOL ? Below(2) : Below(256));
    tensor->set_tensor_content(content);
    if (OneIn(20)) tensor->add_float_val(1);
  }

  void AddValues(TensorProto* tensor, TensorField list, int count) {
    for (int i = 0; i < count; ++i) {
      const int64_t number = Number();
      switch (list) {
        case TensorField::kFloatVal:
          tensor->add_float_val(static_cast<float>(number) / 3);
          break;
        case TensorField::kDoubleVal:
          tensor->add_double_val(static_cast<double>(number) / 3);
          break;
        case TensorField::kIntVal:
          tensor->add_int_val(static_cast<int>(number));
          break;
        case TensorField::kStringVal:
          tensor->add_string_val(std::string(static_cast<size_t>(Below(40)), 's'));
          break;
        case TensorField::kScomplexVal:
          tensor->add_scomplex_val(1), tensor->add_scomplex_val(static_cast<float>(number));
          break;
        case TensorField::kInt64Val:
          tensor->add_int64_val(number);
          break;
        case TensorField::kBoolVal:
          tensor->add_bool_val(number % 2 != 0);
          break;
        case TensorField::kDcomplexVal:
          tensor->add_dcomplex_val(2), tensor->add_dcomplex_val(static_cast<double>(number));
          break;
        case TensorField::kHalfVal:
          tensor->add_half_val(static_cast<uint16_t>(number));
          break;
        case TensorField::kUint32Val:
          tensor->add_uint32_val(static_cast<uint32_t>(number));
          break;
        case TensorField::kUint64Val:
          tensor->add_uint64_val(static_cast<uint64_t>(number));
          break;
        default:
          break;
      }
    }
  }

  std::mt19937_64 rng_;
};

std::string Describe(std::string_view key, const ParsedTensor& tensor) {
  const auto checked = CheckTensor(key, tensor);
  if (!checked.ok()) return checked.status().ToString();
  InputStorage storage(kMaxBytes);
  TensorView view = checked->view;
  if (absl::Status charged = storage.Charge(checked->bytes); !charged.ok())
    return charged.ToString();
  if (absl::Status s = DecodeValues(tensor.values, &storage, &view); !s.ok()) return s.ToString();
  std::string text = std::string(DTypeName(view.dtype)) + view.shape.ToString() + ":";
  if (view.dtype == DType::kString) {
    for (int64_t i = 0; i < view.elements(); ++i) text += view.as<std::string>()[i] + ",";
  } else {
    text.append(view.as<char>(), view.bytes());
  }
  return text;
}

std::map<std::string, std::string> Tensors(const PredictFields& request) {
  std::map<std::string, std::string> tensors;
  for (const PredictFields::Input& input : request.inputs)
    tensors[std::string(input.key)] = Describe(input.key, input.tensor);
  return tensors;
}

// Whether protobuf accepts the bytes. What it makes of them is then what is read here, and so is
// what it writes: one usual form of any message.
bool Compare(const std::string& bytes) {
  PredictRequest proto;
  const bool valid = proto.ParseFromString(bytes);
  PredictFields read;
  const absl::Status status = ReadPredictFields(bytes, &read);
  if (!valid) return false;  // more is accepted here: names that are not UTF-8
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(read.model.name, proto.model_spec().name());
  EXPECT_EQ(read.model.version.has_value(), proto.model_spec().has_version());
  EXPECT_EQ(read.model.version.value_or(0), proto.model_spec().version().value());
  EXPECT_EQ(read.model.label, proto.model_spec().version_label());
  EXPECT_EQ(read.signature, proto.model_spec().signature_name());
  EXPECT_TRUE(std::equal(read.output_filter.begin(), read.output_filter.end(),
                         proto.output_filter().begin(), proto.output_filter().end()));
  const std::string usual = proto.SerializeAsString();
  PredictFields again;
  EXPECT_TRUE(ReadPredictFields(usual, &again).ok());
  EXPECT_EQ(Tensors(read), Tensors(again));
  EXPECT_EQ(Tensors(read).size(), static_cast<size_t>(proto.inputs_size()));
  return true;
}

TEST(DecodePredict, ReadsWholeMessagesAsProtobufDoes) {
  for (int i = 0; i < Rounds(20000) && !testing::Test::HasFailure(); ++i) {
    RandomRequest random(static_cast<uint64_t>(i));
    SCOPED_TRACE(i);
    EXPECT_TRUE(Compare(random.Make().SerializeAsString()));
  }
}

TEST(DecodePredict, ReadsDamagedMessagesAsProtobufDoes) {
  const int rounds = Rounds(200000);
  int valid = 0;
  for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    RandomRequest random(1000000 + static_cast<uint64_t>(i));
    SCOPED_TRACE(i);
    std::string bytes = random.Make().SerializeAsString();
    if (random.OneIn(3)) bytes += random.Make().SerializeAsString();  // protobuf merges the two
    if (!random.OneIn(4)) random.Damage(&bytes);
    if (Compare(bytes)) ++valid;
  }
  EXPECT_GT(valid, rounds / 20);
}

TEST(DecodePredict, NumbersOfFixedSizeStayInTheMessage) {
  PredictRequest request;
  request.mutable_model_spec()->set_name("mnist");
  TensorProto& x = (*request.mutable_inputs())["x"];
  x.set_dtype(tensorflow::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(2);
  x.add_float_val(1);
  x.add_float_val(2);
  const std::string bytes = request.SerializeAsString();
  PredictFields read;
  ASSERT_TRUE(ReadPredictFields(bytes, &read).ok());
  const auto checked = CheckTensor("x", read.inputs[0].tensor);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->bytes, 0);
  EXPECT_GE(checked->view.as<char>(), bytes.data());
  EXPECT_LT(checked->view.as<char>(), bytes.data() + bytes.size());
}

// An entry of a hand-made message: tag, length, bytes (all short).
std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 128; size /= 128) field += static_cast<char>(size % 128 + 128);
  return field + static_cast<char>(size) + bytes;
}

// A few bytes each.
TEST(DecodePredict, NoRequestNamesAsManyInputsAsBytesAllow) {
  const auto read = [](size_t inputs, size_t outputs) {
    std::string bytes;
    for (size_t i = 0; i < inputs; ++i) bytes += std::string("\x12\x00", 2);
    for (size_t i = 0; i < outputs; ++i) bytes += std::string("\x1a\x00", 2);
    PredictFields request;
    return ReadPredictFields(bytes, &request);
  };
  EXPECT_TRUE(read(2000, 2096).ok());
  for (const absl::Status& status : {read(4097, 0), read(0, 4097), read(2000, 2097)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("more than 4096"), std::string::npos) << status;
  }
}

TEST(DecodePredict, UnusualFormsAreRead) {
  const std::string dtype("\x08\x01", 2), two = Field(2, Field(2, std::string("\x08\x02", 2)));
  const std::string one("\x2d\0\0\x80\x3f", 5);  // float_val: 1, not packed
  const std::string packed = Field(5, std::string("\0\0\0\x40", 4));
  const auto request = [](const std::string& tensor) {
    return Field(1, Field(1, "m")) + Field(2, Field(1, "x") + Field(2, tensor));
  };
  const auto same = [](const std::string& bytes) {
    SCOPED_TRACE(testing::PrintToString(bytes));
    EXPECT_TRUE(Compare(bytes));
  };
  same(request(dtype + two + one + one));
  same(request(dtype + two + one + packed));
  same(request(dtype + two + packed + one));
  same(request(dtype + dtype + two));
  same(request(dtype + two) + request(dtype + packed));                         // of an input two
  same(Field(2, Field(1, "x") + Field(2, dtype + two + one) + Field(2, one)));  // of a tensor two
  same(Field(2, Field(1, "x")));
  same(Field(2, Field(2, dtype)));
  same(request(std::string("\x08\x03", 2) + two + std::string("\x38\x07\x38\x08", 4)));  // int_val
  same(request(std::string("\x08\x07", 2) + two + Field(8, "a") + Field(8, "")));
  same(request(dtype + Field(5, "")));
  same(request(dtype + std::string("\xa3\x06\xa4\x06", 4)));  // an unknown group
  same(Field(5, ""));                                         // an option of newer clients
  same(Field(1, Field(4, "stable") + Field(2, std::string("\x08\x07", 2))));
  same(Field(1, Field(2, std::string("\x08\x07", 2)) + Field(4, "stable")));
}

TEST(DecodePredict, BytesThatAreNoMessageAreRefused) {
  const std::string tensor("\x08\x01", 2);
  for (const std::string& bytes :
       {std::string("\x0a\xff"), std::string("\x0b"), std::string("\x02\x00", 2),
        Field(2, Field(1, "x") + Field(2, tensor + Field(5, "abc"))),   // float_val
        Field(2, Field(1, "x") + Field(2, tensor + Field(7, "\xff"))),  // int_val
        Field(2, Field(1, "x") + Field(2, tensor + Field(10, std::string(11, '\xff'))))}) {
    PredictFields request;
    EXPECT_EQ(ReadPredictFields(bytes, &request).code(), absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(bytes);
    EXPECT_FALSE(Compare(bytes));
  }
}

}  // namespace
}  // namespace floe::server
