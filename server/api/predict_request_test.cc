// The walk over the wire format against protobuf's own classes, on random, spliced and damaged
// messages.
#include "server/api/predict_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "server/api/tensor_input.h"
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

const SentTensor* Find(const SentPredict& sent, std::string_view key) {
  for (const SentInput& input : sent.inputs)
    if (input.key == key) return &input.tensor;
  return nullptr;
}

std::string Describe(std::string_view key, const SentTensor& tensor) {
  InputStorage storage(kMaxBytes);
  const absl::StatusOr<TensorView> view = ReadTensor(key, tensor, &storage);
  if (!view.ok()) return view.status().ToString();
  std::string text = std::string(DTypeName(view->dtype)) + view->shape.ToString() + ":";
  if (view->dtype == DType::kString) {
    for (int64_t i = 0; i < view->elements(); ++i) text += view->as<std::string>()[i] + ",";
  } else {
    text.append(view->as<char>(), view->bytes());
  }
  return text;
}

// Whatever the walk accepts, protobuf reads as the same request.
void ExpectSame(const SentPredict& walked, const SentPredict& parsed) {
  EXPECT_EQ(walked.model, parsed.model);
  EXPECT_EQ(walked.version, parsed.version);
  EXPECT_EQ(walked.version_label, parsed.version_label);
  EXPECT_EQ(walked.signature, parsed.signature);
  EXPECT_TRUE(std::equal(walked.output_filter.begin(), walked.output_filter.end(),
                         parsed.output_filter.begin(), parsed.output_filter.end()));
  ASSERT_EQ(walked.inputs.size(), parsed.inputs.size());
  for (const SentInput& input : walked.inputs) {
    const SentTensor* const other = Find(parsed, input.key);
    ASSERT_NE(other, nullptr) << input.key;
    ASSERT_EQ(Describe(input.key, input.tensor), Describe(input.key, *other));
  }
}

// Whether the walk accepted the bytes.
bool Compare(const std::string& bytes) {
  SentPredict walked, parsed;
  if (!WalkPredictRequest(bytes, &walked)) return false;
  const absl::Status status = ParsePredictRequest(bytes, &parsed);
  EXPECT_TRUE(status.ok()) << "walked, but protobuf refuses";
  if (status.ok()) ExpectSame(walked, parsed);
  return true;
}

TEST(PredictRequest, WalkAgreesWithProtobufOnWholeMessages) {
  int walked = 0;
  constexpr int kMessages = 20000;
  for (int i = 0; i < kMessages && !testing::Test::HasFailure(); ++i) {
    RandomRequest random(static_cast<uint64_t>(i));
    SCOPED_TRACE(i);
    if (Compare(random.Make().SerializeAsString())) ++walked;
  }
  EXPECT_GT(walked, kMessages / 2);  // otherwise it is always protobuf that does the work
}

TEST(PredictRequest, WalkAgreesWithProtobufOnDamagedMessages) {
  int walked = 0;
  for (int i = 0; i < 200000 && !testing::Test::HasFailure(); ++i) {
    RandomRequest random(1000000 + static_cast<uint64_t>(i));
    SCOPED_TRACE(i);
    std::string bytes = random.Make().SerializeAsString();
    if (random.OneIn(3)) bytes += random.Make().SerializeAsString();  // protobuf merges the two
    if (!random.OneIn(4)) random.Damage(&bytes);
    if (Compare(bytes)) ++walked;
  }
  EXPECT_GT(walked, 10000);
}

TEST(PredictRequest, UsualMessagesAreWalked) {
  PredictRequest request;
  request.mutable_model_spec()->set_name("mnist");
  TensorProto& x = (*request.mutable_inputs())["x"];
  x.set_dtype(tensorflow::DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(2);
  x.add_float_val(1);
  x.add_float_val(2);
  const std::string bytes = request.SerializeAsString();
  SentPredict sent;
  ASSERT_TRUE(WalkPredictRequest(bytes, &sent));
  InputStorage storage(0);  // nothing may be copied
  const auto view = ReadTensor("x", sent.inputs[0].tensor, &storage);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_GE(view->as<char>(), bytes.data());
  EXPECT_LT(view->as<char>(), bytes.data() + bytes.size());
}

// An entry of a hand-made message: tag, length, bytes (all short).
std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  size_t size = bytes.size();
  for (; size >= 128; size /= 128) field += static_cast<char>(size % 128 + 128);
  return field + static_cast<char>(size) + bytes;
}

// A few bytes each, which protobuf would make objects of.
TEST(PredictRequest, NoRequestNamesAsManyInputsAsBytesAllow) {
  const auto read = [](size_t inputs, size_t outputs) {
    std::string bytes;
    for (size_t i = 0; i < inputs; ++i) bytes += std::string("\x12\x00", 2);
    for (size_t i = 0; i < outputs; ++i) bytes += std::string("\x1a\x00", 2);
    SentPredict sent;
    return ReadPredictRequest(bytes, 1 << 20, &sent);
  };
  EXPECT_TRUE(read(2000, 2096).ok());
  for (const absl::Status& status : {read(4097, 0), read(0, 4097), read(2000, 2097)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("more than 4096"), std::string::npos) << status;
  }
}

TEST(PredictRequest, UnusualFormsAreLeftToProtobuf) {
  const std::string dtype("\x08\x01", 2);
  const std::string unpacked("\x2d\0\0\x80\x3f", 5);  // float_val: 1, not packed
  const auto request = [](const std::string& tensor) {
    return Field(1, Field(1, "m")) + Field(2, Field(1, "x") + Field(2, tensor));
  };
  SentPredict sent;
  EXPECT_TRUE(WalkPredictRequest(request(dtype), &sent));
  for (const std::string& bytes :
       {request(dtype + unpacked), request(dtype + dtype), request(dtype + Field(8, "text")),
        request(dtype) + request(dtype), Field(1, Field(1, "\xff")), Field(5, ""),
        std::string("\x0b\x0c")}) {
    SentPredict other;
    EXPECT_FALSE(WalkPredictRequest(bytes, &other)) << testing::PrintToString(bytes);
  }
  // Tags and sizes longer than 5 bytes are no protobuf; 5 bytes are.
  const std::string spec = Field(1, "m");
  const auto with_tag = [&spec](const std::string& tag) { return tag + spec.substr(1); };
  const std::string long_tag = Field(1, with_tag(std::string("\x8a\x80\x80\x80\x00", 5)));
  EXPECT_TRUE(Compare(long_tag));
  const std::string longer_tag = Field(1, with_tag(std::string("\x8a\x80\x80\x80\x80\x00", 6)));
  const std::string longer_size = Field(1, std::string("\x0a\x81\x80\x80\x80\x80\x00", 7) + "m");
  EXPECT_FALSE(Compare(longer_tag));
  EXPECT_FALSE(Compare(longer_size));
  SentPredict read;
  ASSERT_TRUE(ReadPredictRequest(request(dtype + unpacked), kMaxBytes, &read).ok());
  EXPECT_EQ(read.inputs[0].tensor.list, TensorField::kFloatVal);
  EXPECT_EQ(ReadPredictRequest("\x0a\xff", kMaxBytes, &read).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PredictRequest, WhatTakesAWhileToWalkIsKnownBeforehand) {
  const std::string large(1 << 20, 1);
  const auto request = [](const std::string& tensor) {
    return Field(1, Field(1, "m")) + Field(2, Field(1, "x") + Field(2, tensor));
  };
  const std::string is_bool("\x08\x0a", 2), is_float("\x08\x01", 2);
  EXPECT_TRUE(IsQuickToWalk(request(is_float + Field(4, large)))) << "tensor_content";
  EXPECT_TRUE(IsQuickToWalk(request(is_float + Field(5, large)))) << "float_val";
  EXPECT_FALSE(IsQuickToWalk(request(is_bool + Field(4, large)))) << "each byte is looked at";
  EXPECT_FALSE(IsQuickToWalk(request(Field(10, large)))) << "int64_val";
  EXPECT_TRUE(IsQuickToWalk(request(Field(10, "\x01\x02"))));
  EXPECT_FALSE(IsQuickToWalk(request(Field(8, "text")))) << "string_val is protobuf's";
  EXPECT_FALSE(IsQuickToWalk(request(Field(2, large)))) << "dims";
  EXPECT_FALSE(IsQuickToWalk(Field(3, large))) << "an output's name";
  std::string floats;
  for (int i = 0; i < 100; ++i) floats += std::string("\x2d\0\0\0\0", 5);
  EXPECT_FALSE(IsQuickToWalk(request(floats))) << "a list that is not packed";
}

}  // namespace
}  // namespace floe::server
