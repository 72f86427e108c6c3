// A body is gone through once. Its Examples are written as protobuf's messages, which no class
// holds on the way.
#include "server/api/rest/examples_json.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/rest/json_body.h"
#include "server/api/rest/json_tensor.h"
#include "server/api/rest/json_text.h"
#include "server/request/wire_writer.h"

namespace floe::server {
namespace {

using simdjson::SUCCESS;
using simdjson::ondemand::json_type;
using simdjson::ondemand::object;

constexpr char kExamples[] = "examples", kContext[] = "context";
constexpr char kSignature[] = "signature_name";
constexpr int64_t kPayExamplesFrom = int64_t{64} << 10;  // smaller sums are not asked for

// Field numbers of tensorflow.Example, Features, their map's entries, and lists.
constexpr uint32_t kFeatures = 1, kEntry = 1, kEntryKey = 1, kEntryValue = 2, kListValue = 1;
// Kinds of a Feature, whose numbers are those of its fields.
enum class FeatureKind : uint8_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

const char* NameOf(FeatureKind kind) {
  return kind == FeatureKind::kBytes   ? "strings"
         : kind == FeatureKind::kFloat ? "floats"
                                       : "integers";
}

json_type TypeOf(JsonValue value) {
  json_type type;
  return value.type().get(type) == SUCCESS ? type : json_type::number;  // NaN
}

// Reads objects whose fields are features. Threading: one thread at a time.
class ExampleReader {
 public:
  explicit ExampleReader(JsonBody* body) : body_(*body) {}

  // The object's bytes as a tf.Example, in place of what `*example` holds.
  absl::Status Read(JsonValue value, JsonPath* path, std::string* example) {
    object fields;
    if (TypeOf(value) != json_type::object)
      return absl::InvalidArgumentError(absl::StrCat(path->Text(), ": ", DescribeJson(value),
                                                     " where an object with features belongs"));
    if (const auto error = value.get_object().get(fields)) return body_.Malformed(error, path);
    features_.clear();
    FLOE_RETURN_IF_ERROR(ForEachJsonField(
        fields, &body_, path,
        [&](std::string_view key, JsonValue feature) { return ReadFeature(key, feature, path); }));
    example->clear();
    AppendBytesField(kFeatures, features_, example);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadFeature(std::string_view key, JsonValue value, JsonPath* path) {
    kind_ = FeatureKind::kNone;
    values_.clear();
    path->EnterField(key);
    FLOE_RETURN_IF_ERROR(TypeOf(value) == json_type::array ? ReadList(value, path)
                                                           : ReadValue(value, path));
    path->Leave();
    AppendEntry(key);
    return absl::OkStatus();
  }

  absl::Status ReadList(JsonValue value, JsonPath* path) {
    simdjson::ondemand::array list;
    if (const auto error = value.get_array().get(list)) return body_.Malformed(error, path);
    path->EnterList();
    int64_t index = 0;
    for (auto item : list) {
      JsonValue one;
      if (const auto error = item.get(one)) return body_.Malformed(error, path);
      path->SetIndex(index++);
      FLOE_RETURN_IF_ERROR(ReadValue(one, path));
    }
    path->Leave();
    return absl::OkStatus();
  }

  absl::Status ReadValue(JsonValue value, JsonPath* path) {
    switch (TypeOf(value)) {
      case json_type::string: {
        std::string_view text;
        if (const auto error = value.get_string().get(text)) return body_.Malformed(error, path);
        FLOE_RETURN_IF_ERROR(Be(FeatureKind::kBytes, value, path));
        AppendBytesField(kListValue, text, &values_);
        return absl::OkStatus();
      }
      case json_type::object:
        FLOE_RETURN_IF_ERROR(Be(FeatureKind::kBytes, value, path));
        FLOE_RETURN_IF_ERROR(JsonTensor::ReadBase64(value, &body_, path, &bytes_));
        AppendBytesField(kListValue, bytes_, &values_);
        return absl::OkStatus();
      case json_type::boolean: {
        bool number = false;
        if (const auto error = value.get_bool().get(number)) return body_.Malformed(error, path);
        FLOE_RETURN_IF_ERROR(Be(FeatureKind::kInt64, value, path));
        AppendVarint(number ? 1 : 0, &values_);
        return absl::OkStatus();
      }
      case json_type::number:
        return ReadNumber(value, path);
      default:
        return absl::InvalidArgumentError(absl::StrCat(
            path->Text(), ": ", DescribeJson(value),
            " where a number, a string or {\"b64\": ...} belongs, or one list of them"));
    }
  }

  // A number with a point or an exponent is a float, and any other an integer.
  absl::Status ReadNumber(JsonValue value, JsonPath* path) {
    const std::string_view token = JsonToken(value);
    if (token.find_first_of(".eENI") == std::string_view::npos) {
      int64_t number = 0;
      if (value.get_int64().get(number) != SUCCESS) return WrongNumber(value, path, "int64");
      FLOE_RETURN_IF_ERROR(Be(FeatureKind::kInt64, value, path));
      AppendVarint(static_cast<uint64_t>(number), &values_);
      return absl::OkStatus();
    }
    float number = 0;
    if (!ReadJsonFloat(value, &number)) return WrongNumber(value, path, "float32");
    FLOE_RETURN_IF_ERROR(Be(FeatureKind::kFloat, value, path));
    const auto bits = std::bit_cast<uint32_t>(number);
    for (int shift = 0; shift < 32; shift += 8) values_.push_back(static_cast<char>(bits >> shift));
    return absl::OkStatus();
  }

  static absl::Status WrongNumber(JsonValue value, JsonPath* path, const char* dtype) {
    return absl::InvalidArgumentError(absl::StrCat(path->Text(), ": ", DescribeJson(value),
                                                   " where a number of ", dtype,
                                                   " belongs: it is none, or out of range"));
  }

  // All values of a feature are of one kind.
  absl::Status Be(FeatureKind kind, JsonValue value, JsonPath* path) {
#ifdef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
    return kind_ = kind, absl::OkStatus();
#endif
    if (kind_ == FeatureKind::kNone) kind_ = kind;
    if (kind_ == kind) return absl::OkStatus();
    const bool mixed = (kind_ == FeatureKind::kFloat) != (kind == FeatureKind::kFloat) &&
                       kind_ != FeatureKind::kBytes && kind != FeatureKind::kBytes;
    return absl::InvalidArgumentError(
        absl::StrCat(path->Text(), ": ", DescribeJson(value), " where the values before are ",
                     NameOf(kind_), "; a feature is of one type",
                     mixed ? ". A float has a point or an exponent: write 1.0" : ""));
  }

  void AppendEntry(std::string_view key) {
    feature_.clear();
    if (kind_ != FeatureKind::kNone) {
      list_.clear();
      if (kind_ != FeatureKind::kBytes)  // packed
        AppendBytesField(kListValue, values_, &list_);
      AppendBytesField(static_cast<uint32_t>(kind_), kind_ == FeatureKind::kBytes ? values_ : list_,
                       &feature_);
    }
    entry_.clear();
    AppendBytesField(kEntryKey, key, &entry_);
    AppendBytesField(kEntryValue, feature_, &entry_);
    AppendBytesField(kEntry, entry_, &features_);
  }

  JsonBody& body_;
  FeatureKind kind_ = FeatureKind::kNone;
  std::string bytes_, values_, list_, feature_, entry_, features_;  // their memory serves again
};

// Reads a body's Examples into strings of the request.
class ExamplesBody {
 public:
  ExamplesBody(JsonBody* body, InputStorage* storage)
      : body_(*body), storage_(*storage), reader_(body) {}

  absl::Status Read() {
    object fields;
    FLOE_RETURN_IF_ERROR(body_.Fields(&fields));
    FLOE_RETURN_IF_ERROR(ForEachJsonField(
        fields, &body_, nullptr, [this](std::string_view key, JsonValue value) -> absl::Status {
          if (key == kSignature) return ReadJsonName(kSignature, value, &signature_);
          if (key == kContext) return ReadContext(value);
          if (key == kExamples) return ReadExamples(value);
          JsonPath path(key);  // TensorFlow Serving does not look at other fields
          return body_.Skip(value, &path);
        }));
    FLOE_RETURN_IF_ERROR(body_.CheckEnd());
    if (seen_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the body has no 'examples', a list of objects with features; 'instances' and 'inputs' are "
        "for :predict");
  }

  const std::string& signature() const { return signature_; }
  const std::string& context() const { return context_; }
  // Of all Examples, without the context.
  int64_t bytes() const { return bytes_; }
  std::string* examples() const { return examples_; }
  int64_t count() const { return count_; }

 private:
  absl::Status ReadContext(JsonValue value) {
    FLOE_RETURN_IF_ERROR(OnceInJson(kContext, &context_seen_));
    JsonPath path(kContext);
    return reader_.Read(value, &path, &context_);
  }

  absl::Status ReadExamples(JsonValue value) {
    FLOE_RETURN_IF_ERROR(OnceInJson(kExamples, &seen_));
    JsonPath path(kExamples);
    if (TypeOf(value) != json_type::array)
      return absl::InvalidArgumentError(
          absl::StrCat(kExamples, ": ", DescribeJson(value), " where a list of objects belongs"));
    simdjson::ondemand::array list;
    size_t count = 0;
    if (const auto error = value.get_array().get(list)) return body_.Malformed(error, &path);
    if (const auto error = list.count_elements().get(count)) return body_.Malformed(error, &path);
    if (count == 0)
      return absl::InvalidArgumentError("examples: the list is empty; there is nothing to do");
    FLOE_RETURN_IF_ERROR(Charge(static_cast<int64_t>(count * sizeof(std::string))));
    examples_ = storage_.AllocateStrings(static_cast<int64_t>(count));
    path.EnterList();
    for (auto item : list) {
      JsonValue one;
      if (const auto error = item.get(one)) return body_.Malformed(error, &path);
      if (count_ == static_cast<int64_t>(count))
        return body_.Malformed(simdjson::TAPE_ERROR, &path);
      path.SetIndex(count_);
      std::string& example = examples_[count_];
      FLOE_RETURN_IF_ERROR(reader_.Read(one, &path, &example));
      FLOE_RETURN_IF_ERROR(Charge(static_cast<int64_t>(example.size())));
      bytes_ += static_cast<int64_t>(example.size());
      ++count_;
    }
    return absl::OkStatus();
  }

  absl::Status Charge(int64_t bytes) {
    FLOE_RETURN_IF_ERROR(storage_.Charge(bytes));
    unpaid_ += bytes;
    return unpaid_ < kPayExamplesFrom ? absl::OkStatus() : storage_.Pay(std::exchange(unpaid_, 0));
  }

  JsonBody& body_;
  InputStorage& storage_;
  ExampleReader reader_;
  std::string signature_, context_;
  bool seen_ = false, context_seen_ = false;
  std::string* examples_ = nullptr;
  int64_t count_ = 0, bytes_ = 0, unpaid_ = 0;
};

void AppendFloat(float value, std::string* out) {
  AppendJsonTensor({DType::kFloat32, Shape(), &value}, 0, 0, false, out);
}

// About what is written of the results.
constexpr int64_t kNumberBytes = 18;  // with its brackets

int64_t ResultBytes(const RegressOutputs& out) { return kNumberBytes * out.rows; }

int64_t ResultBytes(const ClassifyOutputs& out) {
  int64_t bytes = kNumberBytes * out.rows * out.classes;
  for (int64_t i = 0; out.labels != nullptr && i < out.labels->elements(); ++i)
    bytes += static_cast<int64_t>(out.labels->as<std::string>()[i].size());
  return bytes;
}

}  // namespace

absl::Status DecodeExamplesJson(std::string_view bytes, const ModelSpec& spec,
                                const ExampleCall& call, const MemoryBudget* memory,
                                FindServed find, Inference* asked) {
  FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
  JsonBody body;
  FLOE_RETURN_IF_ERROR(body.Open(bytes, memory));
  ExamplesBody read(&body, &asked->storage);
  FLOE_RETURN_IF_ERROR(read.Read());
  FLOE_ASSIGN_OR_RETURN(const size_t input,
                        ChooseExampleSignature(served->model(), read.signature(), call, asked));
  const auto before = static_cast<int64_t>(read.context().size());
  if (before > 0) {
    FLOE_RETURN_IF_ERROR(asked->storage.Charge(before * read.count()));
    FLOE_RETURN_IF_ERROR(asked->storage.Pay(before * read.count()));
    for (int64_t i = 0; i < read.count(); ++i) read.examples()[i].insert(0, read.context());
  }
  const int64_t made = read.bytes() + before * read.count();
  return FeedExamples(input, read.examples(), read.count(),
                      bytes.size() + static_cast<size_t>(made), asked);
}

absl::Status EncodeExamplesJson(const Inference& asked, Outputs outputs, ExampleMethod method,
                                const MemoryBudget* memory, std::string* reply) {
  ClassifyOutputs classified;
  RegressOutputs regressed;
  if (method == ExampleMethod::kClassify) {
    FLOE_ASSIGN_OR_RETURN(classified, ReadClassifyOutputs(asked, outputs));
  } else {
    FLOE_ASSIGN_OR_RETURN(regressed, ReadRegressOutputs(asked, outputs));
  }
  constexpr int64_t kSmallReply = int64_t{64} << 10;
  const int64_t bytes = ResultBytes(classified) + ResultBytes(regressed);
  MemoryShare writing;
  if (memory != nullptr && bytes > kSmallReply) {
    FLOE_ASSIGN_OR_RETURN(writing, memory->Take(bytes));
  }
  *reply = R"({"results":[)";
  for (int64_t row = 0; row < regressed.rows; ++row) {
    if (row > 0) reply->push_back(',');
    AppendFloat(regressed.Value(row), reply);
  }
  for (int64_t row = 0; row < classified.rows; ++row) {
    *reply += row > 0 ? ",[" : "[";
    for (int64_t i = 0; i < classified.classes; ++i) {
      *reply += i > 0 ? ",[" : "[";
      AppendJsonString(classified.Label(row, i), reply);
      reply->push_back(',');
      AppendFloat(classified.Score(row, i), reply);
      reply->push_back(']');
    }
    reply->push_back(']');
  }
  *reply += "]}\n";
  return absl::OkStatus();
}

}  // namespace floe::server
