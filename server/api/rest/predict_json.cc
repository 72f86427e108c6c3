// A body is gone through twice: a signature's name may stand behind the values that it is needed
// for, and going past values costs a tenth of reading them.
#include "server/api/rest/predict_json.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "runtime/input_shape.h"
#include "server/api/rest/json_tensor.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

using simdjson::SUCCESS;
using simdjson::ondemand::json_type;
using simdjson::ondemand::object;

constexpr char kInstances[] = "instances", kInputs[] = "inputs";
constexpr char kSignatureName[] = "signature_name";
constexpr char kBase64Field[] = "b64";

bool IsObject(JsonValue value) {
  json_type type;
  return value.type().get(type) == SUCCESS && type == json_type::object;
}

// What a body's top level says.
struct PredictFieldsJson {
  std::string signature;
  bool instances = false, inputs = false;
};

absl::Status ReadTopLevel(JsonBody* body, PredictFieldsJson* out) {
  object fields;
  FLOE_RETURN_IF_ERROR(body->Fields(&fields));
  FLOE_RETURN_IF_ERROR(ForEachJsonField(
      fields, body, nullptr, [out](std::string_view key, JsonValue value) -> absl::Status {
        if (key == kInstances) return OnceInJson(kInstances, &out->instances);
        if (key == kInputs) return OnceInJson(kInputs, &out->inputs);
        if (key == kSignatureName) return ReadJsonName(kSignatureName, value, &out->signature);
        return absl::OkStatus();
      }));
  if (out->instances != out->inputs) return absl::OkStatus();
  return absl::InvalidArgumentError(
      out->inputs ? "the body has both 'instances' and 'inputs'; send one of them"
                  : "the body has neither 'instances' (a value for each row) nor 'inputs' (whole "
                    "tensors)");
}

// Reads the values for the inputs of a signature.
class InputsJson {
 public:
  InputsJson(JsonBody* body, Inference* asked)
      : body_(*body), asked_(*asked), tensors_(asked->signature->def().inputs.size()) {
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (!taken()[i].optional) single_ = single_ == kNone ? static_cast<int>(i) : kMany;
    if (single_ == kNone && tensors_.size() == 1) single_ = 0;
  }

  absl::Status ReadRows(JsonValue value) {
    JsonPath path(kInstances);
    simdjson::ondemand::array rows;
    if (const auto error = value.get_array().get(rows))
      return error == simdjson::INCORRECT_TYPE ? NoList(value) : body_.Malformed(error, &path);
    path.EnterList();
    bool named = false;
    int64_t row = 0;
    for (auto item : rows) {
      JsonValue one;
      path.SetIndex(row);
      if (const auto error = item.get(one)) return body_.Malformed(error, &path);
      if (row == 0) {
        FLOE_ASSIGN_OR_RETURN(const bool bytes, IsBytes(one, &path));
        named = IsObject(one) && !bytes;
      }
      FLOE_RETURN_IF_ERROR(named ? ReadNamedRow(one, row, &path) : ReadRow(one, &path));
      ++row;
    }
    if (row > 0) return absl::OkStatus();
    JsonTensor* tensor = nullptr;
    FLOE_RETURN_IF_ERROR(Single(path, &tensor));
    return absl::OkStatus();
  }

  absl::Status ReadColumns(JsonValue value) {
    JsonPath path(kInputs);
    FLOE_ASSIGN_OR_RETURN(const bool bytes, IsBytes(value, &path));
    if (!IsObject(value) || bytes) {
      is_rows_ = false;
      JsonTensor* tensor = nullptr;
      FLOE_RETURN_IF_ERROR(Single(path, &tensor));
      return tensor->Read(value, &path);
    }
    is_rows_ = false;
    object fields;
    if (const auto error = value.get_object().get(fields)) return body_.Malformed(error, &path);
    return ForEachJsonField(fields, &body_, &path, [&](std::string_view key, JsonValue one) {
      return ReadColumn(key, one, &path);
    });
  }

  // Checks what was read, and gives it to the Inference.
  absl::Status Finish(size_t message_bytes) {
    absl::InlinedVector<std::string_view, kUsualTensors> keys;
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].has_value()) keys.push_back(taken()[i].key);
    TensorIndices sent;
    FLOE_RETURN_IF_ERROR(PlaceInputs(keys, &asked_, &sent));
    asked_.held_bytes = message_bytes;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].has_value()) continue;
      asked_.held_bytes += static_cast<size_t>(tensors_[i]->bytes());
      tensors_[i]->Finish(taken()[i].type.shape, &asked_.inputs[i]);
      FLOE_RETURN_IF_ERROR(CheckInputShape(taken()[i], asked_.inputs[i].shape));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kNone = -1, kMany = -2;

  const std::vector<SignatureTensor>& taken() const { return asked_.signature->def().inputs; }

  // {"b64": ...} is a value, unless an input has that name. After an error of simdjson's nothing
  // more can be read.
  absl::StatusOr<bool> IsBytes(JsonValue value, JsonPath* path) {
    object fields;
    size_t count = 0;
    if (single_ < 0 || taken()[static_cast<size_t>(single_)].type.dtype != DType::kString ||
        asked_.signature->FindInput(kBase64Field) >= 0)
      return false;
    if (!IsObject(value)) return false;
    if (const auto error = value.get_object().get(fields)) return body_.Malformed(error, path);
    if (const auto error = fields.count_fields().get(count)) return body_.Malformed(error, path);
    if (count == 0)  // simdjson opens an empty object only once
      return absl::InvalidArgumentError(
          absl::StrCat(path->Text(), ": an object without fields is no value"));
    if (count != 1) return false;
    const auto found = fields.find_field(kBase64Field).error();
    if (found != SUCCESS && found != simdjson::NO_SUCH_FIELD) return body_.Malformed(found, path);
    if (const auto error = fields.reset().error()) return body_.Malformed(error, path);
    return found == SUCCESS;
  }

  absl::Status Tensor(size_t index, const JsonPath& path, JsonTensor** out) {
    std::optional<JsonTensor>& tensor = tensors_[index];
    if (!tensor.has_value()) {
      const DType dtype = taken()[index].type.dtype;
      if (!HasJson(dtype))
        return absl::InvalidArgumentError(
            absl::StrCat(path.Text(), ": input ", Quoted(taken()[index].key), " takes ",
                         DTypeName(dtype), ", which JSON cannot carry; call gRPC's Predict"));
      tensor.emplace(dtype, &body_, &asked_.storage);
      if (is_rows_) tensor->BeginRows();
    }
    *out = &*tensor;
    return absl::OkStatus();
  }

  // The input that is meant where none is named.
  absl::Status Single(const JsonPath& path, JsonTensor** out) {
    if (single_ >= 0) return Tensor(static_cast<size_t>(single_), path, out);
    std::vector<std::string> names;
    for (const SignatureTensor& input : taken()) names.push_back(input.key);
    return absl::InvalidArgumentError(
        absl::StrCat(path.Text(), ": ", ModelAndSignature(asked_), " has several inputs (",
                     QuotedList(names), "); send an object with a value for each by its name"));
  }

  absl::Status Named(std::string_view key, const JsonPath& path, JsonTensor** out) {
    const int index = asked_.signature->FindInput(key);
    if (index >= 0) return Tensor(static_cast<size_t>(index), path, out);
    TensorIndices sent;  // its message has what there is
    const absl::Status status = PlaceInputs({&key, 1}, &asked_, &sent);
    return absl::InvalidArgumentError(
        absl::StrCat(path.Text(), ": ", std::string(status.message())));
  }

  absl::Status ReadRow(JsonValue value, JsonPath* path) {
    JsonTensor* tensor = nullptr;
    FLOE_RETURN_IF_ERROR(Single(*path, &tensor));
    return tensor->ReadRow(value, path);
  }

  absl::Status ReadNamedRow(JsonValue value, int64_t row, JsonPath* path) {
    object fields;
    if (!IsObject(value))
      return absl::InvalidArgumentError(absl::StrCat(
          path->Text(), ": ", DescribeJson(value), " where an object belongs, as instances[0] is"));
    if (const auto error = value.get_object().get(fields)) return body_.Malformed(error, path);
    FLOE_RETURN_IF_ERROR(ForEachJsonField(
        fields, &body_, path,
        [&](std::string_view key, JsonValue one) { return ReadNamed(key, one, row, path); }));
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].has_value() && tensors_[i]->rows() != row + 1)
        return absl::InvalidArgumentError(absl::StrCat(
            path->Text(), " has no ", Quoted(taken()[i].key), ", which instances[0] has"));
    return absl::OkStatus();
  }

  absl::Status ReadNamed(std::string_view key, JsonValue value, int64_t row, JsonPath* path) {
    JsonTensor* tensor = nullptr;
    FLOE_RETURN_IF_ERROR(Named(key, *path, &tensor));
    if (tensor->rows() != row)
      return absl::InvalidArgumentError(
          absl::StrCat(path->Text(), " has ", Quoted(key),
                       tensor->rows() > row ? " twice" : ", which instances[0] has not"));
    path->EnterField(key);
    FLOE_RETURN_IF_ERROR(tensor->ReadRow(value, path));
    path->Leave();
    return absl::OkStatus();
  }

  absl::Status ReadColumn(std::string_view key, JsonValue value, JsonPath* path) {
    JsonTensor* tensor = nullptr;
    const int index = asked_.signature->FindInput(key);
    if (index >= 0 && tensors_[static_cast<size_t>(index)].has_value())
      return absl::InvalidArgumentError(absl::StrCat(path->Text(), " has ", Quoted(key), " twice"));
    FLOE_RETURN_IF_ERROR(Named(key, *path, &tensor));
    path->EnterField(key);
    FLOE_RETURN_IF_ERROR(tensor->Read(value, path));
    path->Leave();
    return absl::OkStatus();
  }

  static absl::Status NoList(JsonValue value) {
    return absl::InvalidArgumentError(absl::StrCat(
        "instances: ", DescribeJson(value), " where a list with a value for each row belongs"));
  }

  JsonBody& body_;
  Inference& asked_;
  std::vector<std::optional<JsonTensor>> tensors_;  // as the signature's; none: not sent
  int single_ = kNone;                              // the only input that must be sent
  bool is_rows_ = true;
};

absl::Status CheckOutputs(const Inference& asked) {
  for (const int index : asked.outputs) {
    const SignatureTensor& output = asked.signature->def().outputs[static_cast<size_t>(index)];
    if (HasJson(output.type.dtype)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output ", Quoted(output.key), " is ", DTypeName(output.type.dtype),
                     ", which JSON cannot carry; call gRPC's Predict"));
  }
  return absl::OkStatus();
}

struct JsonOutput {
  const SignatureTensor& tensor;
  const TensorView& view;
  // TensorFlow Serving's rule for strings that are bytes.
  bool base64() const { return absl::EndsWith(tensor.key, "_bytes"); }
};
using JsonOutputs = absl::InlinedVector<JsonOutput, kUsualTensors>;

absl::Status CheckRows(const JsonOutputs& outputs, int64_t* rows) {
  *rows = -1;
  for (const JsonOutput& output : outputs) {
    const Shape& shape = output.view.shape;
    const int64_t has = shape.rank() == 0 ? -1 : shape.dim(0);
    if (*rows < 0) *rows = has;
    if (has >= 0 && has == *rows) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output ", Quoted(output.tensor.key), " has shape ", shape.ToString(),
                     has < 0 ? ", which has no rows" : ", and others have other numbers of rows",
                     "; send 'inputs' instead of 'instances', which is answered with whole "
                     "tensors"));
  }
  return absl::OkStatus();
}

void AppendRow(const JsonOutput& output, int64_t row, std::string* reply) {
  const int64_t rows = output.view.shape.dim(0);
  AppendJsonTensor(output.view, 1, row * (output.view.elements() / rows), output.base64(), reply);
}

// {"a": ..., "b": ...} with what `append` writes for each.
template <typename Append>
void AppendNamed(const JsonOutputs& outputs, std::string* reply, Append append) {
  char before = '{';
  for (const JsonOutput& output : outputs) {
    reply->push_back(std::exchange(before, ','));
    AppendJsonString(output.tensor.key, reply);
    reply->push_back(':');
    append(output);
  }
  *reply += before == '{' ? "{}" : "}";
}

absl::Status WriteRows(const JsonOutputs& outputs, std::string* reply) {
  int64_t rows = 0;
  FLOE_RETURN_IF_ERROR(CheckRows(outputs, &rows));
  *reply += R"({"predictions":[)";
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) reply->push_back(',');
    if (outputs.size() == 1)
      AppendRow(outputs[0], row, reply);
    else
      AppendNamed(outputs, reply, [&](const JsonOutput& one) { AppendRow(one, row, reply); });
  }
  *reply += "]}\n";
  return absl::OkStatus();
}

void WriteColumns(const JsonOutputs& outputs, std::string* reply) {
  const auto append = [reply](const JsonOutput& output) {
    AppendJsonTensor(output.view, 0, 0, output.base64(), reply);
  };
  *reply += R"({"outputs":)";
  if (outputs.size() == 1)
    append(outputs[0]);
  else
    AppendNamed(outputs, reply, append);
  *reply += "}\n";
}

}  // namespace

absl::Status DecodePredictJson(std::string_view bytes, const ModelSpec& spec,
                               const MemoryBudget* memory, FindServed find, Inference* asked,
                               JsonLayout* layout) {
  FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
  JsonBody body;
  PredictFieldsJson top;
  FLOE_RETURN_IF_ERROR(body.Open(bytes, memory));
  FLOE_RETURN_IF_ERROR(ReadTopLevel(&body, &top));
  *layout = top.instances ? JsonLayout::kRows : JsonLayout::kColumns;
  FLOE_RETURN_IF_ERROR(ChooseSignature(served->model(), top.signature, asked));
  FLOE_RETURN_IF_ERROR(ChooseOutputs({}, asked));
  FLOE_RETURN_IF_ERROR(CheckOutputs(*asked));
  InputsJson inputs(&body, asked);
  object fields;
  FLOE_RETURN_IF_ERROR(body.Fields(&fields));
  FLOE_RETURN_IF_ERROR(ForEachJsonField(
      fields, &body, nullptr, [&](std::string_view key, JsonValue value) -> absl::Status {
        if (key == kInstances) return inputs.ReadRows(value);
        if (key == kInputs) return inputs.ReadColumns(value);
        JsonPath path(key);  // TensorFlow Serving does not look at other fields
        return body.Skip(value, &path);
      }));
  FLOE_RETURN_IF_ERROR(body.CheckEnd());
  return inputs.Finish(bytes.size());
}

absl::Status EncodePredictJson(const Inference& asked, Outputs outputs, JsonLayout layout,
                               const MemoryBudget* memory, std::string* reply) {
  const SignatureDef& def = asked.signature->def();
  if (outputs.size() != def.outputs.size())
    return absl::InternalError(absl::StrCat(ModelAndSignature(asked), " gave ", outputs.size(),
                                            " outputs instead of ", def.outputs.size()));
  JsonOutputs chosen;
  int64_t bytes = 0;
  for (const int index : asked.outputs) {
    chosen.push_back(
        {def.outputs[static_cast<size_t>(index)], outputs[static_cast<size_t>(index)]});
    bytes += JsonBytes(chosen.back().view);
  }
  MemoryShare writing;
  constexpr int64_t kSmallReply = int64_t{64} << 10;
  if (memory != nullptr && bytes > kSmallReply) {
    FLOE_ASSIGN_OR_RETURN(writing, memory->Take(bytes));
  }
  reply->clear();
  reply->reserve(static_cast<size_t>(bytes));
  if (layout == JsonLayout::kRows) return WriteRows(chosen, reply);
  WriteColumns(chosen, reply);
  return absl::OkStatus();
}

}  // namespace floe::server
