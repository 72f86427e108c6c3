// An input is gone through twice: its dtype and shape may stand behind its values.
#include "server/api/rest/infer_json.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/rest/json_tensor.h"
#include "server/api/rest/json_text.h"
#include "server/request/input_reader.h"
#include "server/request/kserve_types.h"
#include "server/request/request.h"

namespace floe::server {
namespace {

using simdjson::SUCCESS;
using simdjson::ondemand::array;
using simdjson::ondemand::object;

constexpr int kMostJsonDims = 254;  // as TensorFlow
constexpr std::chrono::microseconds kLongestWish = std::chrono::hours(24 * 365);

absl::Status WrongJson(const JsonPath& path, JsonValue value, const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(path.Text(), ": ", DescribeJson(value), " where ", expected, " belongs"));
}

struct InputJson {
  std::string name, datatype;
  Shape shape;
  bool has_shape = false, has_data = false, shared_memory = false;
  std::optional<int64_t> binary_bytes;
  std::string_view binary;  // where the body has them
  std::optional<JsonTensor> tensor;
};

struct OutputJson {
  std::string name;
  std::optional<bool> binary;
};

// Reads the JSON of a body. Strings are copied: views end when the body is read again.
class InferBody {
 public:
  InferBody(JsonBody* body, InferJsonForm* form) : body_(*body), form_(*form) {}

  // All but the values.
  absl::Status Read() {
    object fields;
    FLOE_RETURN_IF_ERROR(body_.Fields(&fields));
    JsonPath path("body");
    return ForFields(fields, &path,
                     [&](std::string_view key, JsonValue value) { return ReadField(key, value); });
  }

  // The values of inputs that are no binary ones, after their dtypes are the signature's.
  absl::Status ReadData(Inference* asked) {
    object fields;
    FLOE_RETURN_IF_ERROR(body_.Fields(&fields));
    JsonPath path("body");
    FLOE_RETURN_IF_ERROR(
        ForFields(fields, &path, [&](std::string_view key, JsonValue value) -> absl::Status {
          JsonPath at(key);
          if (key != "inputs") return body_.Skip(value, &at);
          size_t index = 0;
          return ForItems(value, &at, [&](JsonValue one) {
            return ReadInputData(one, &inputs[index++], asked, &at);
          });
        }));
    return body_.CheckEnd();
  }

  std::string signature;
  std::vector<InputJson> inputs;
  std::vector<OutputJson> outputs;
  bool binary_output = false;  // unless an output says otherwise

 private:
  template <typename Visit>
  absl::Status ForFields(object& fields, JsonPath* path, Visit visit) {
    for (auto item : fields) {
      simdjson::ondemand::field field;
      std::string_view key;
      if (const auto error = std::move(item).get(field)) return body_.Malformed(error, path);
      if (const auto error = field.unescaped_key().get(key)) return body_.Malformed(error, path);
      FLOE_RETURN_IF_ERROR(visit(key, field.value()));
    }
    return absl::OkStatus();
  }

  // Of an object: its fields, with their names in the path.
  template <typename Visit>
  absl::Status ForNamed(JsonValue value, JsonPath* path, Visit visit) {
    object fields;
    if (value.get_object().get(fields) != SUCCESS) return WrongJson(*path, value, "an object");
    return ForFields(fields, path, [&](std::string_view key, JsonValue one) -> absl::Status {
      path->EnterField(key);
      FLOE_RETURN_IF_ERROR(visit(key, one));
      path->Leave();
      return absl::OkStatus();
    });
  }

  template <typename Visit>
  absl::Status ForItems(JsonValue value, JsonPath* path, Visit visit) {
    array items;
    if (value.get_array().get(items) != SUCCESS) return WrongJson(*path, value, "a list");
    path->EnterList();
    int64_t index = 0;
    for (auto item : items) {
      JsonValue one;
      path->SetIndex(index++);
      if (const auto error = item.get(one)) return body_.Malformed(error, path);
      FLOE_RETURN_IF_ERROR(visit(one));
    }
    path->Leave();
    return absl::OkStatus();
  }

  absl::Status Text(JsonValue value, const JsonPath& path, std::string* out) {
    std::string_view text;
    if (value.get_string().get(text) != SUCCESS) return WrongJson(path, value, "a string");
    *out = std::string(text);
    return absl::OkStatus();
  }
  absl::Status Number(JsonValue value, const JsonPath& path, int64_t* out) {
    if (value.get_int64().get(*out) == SUCCESS && *out >= 0) return absl::OkStatus();
    return WrongJson(path, value, "a whole number that is not negative");
  }
  absl::Status YesNo(JsonValue value, const JsonPath& path, bool* out) {
    if (value.get_bool().get(*out) == SUCCESS) return absl::OkStatus();
    return WrongJson(path, value, "true or false");
  }

  absl::Status ReadField(std::string_view key, JsonValue value) {
    JsonPath path(key);
    if (key == "id") return Text(value, path, &form_.id);
    if (key == "parameters")
      return ForNamed(value, &path, [&](std::string_view name, JsonValue one) {
        return ReadParameter(name, one, path);
      });
    if (key == "outputs")
      return ForItems(value, &path, [&](JsonValue one) { return ReadOutput(one, &path); });
    if (key != "inputs") return absl::OkStatus();
    if (std::exchange(has_inputs_, true))
      return absl::InvalidArgumentError("the body has 'inputs' twice");
    return ForItems(value, &path, [&](JsonValue one) { return ReadInput(one, &path); });
  }

  absl::Status ReadParameter(std::string_view name, JsonValue value, const JsonPath& path) {
    int64_t number = 0;
    if (name == "binary_data_output") return YesNo(value, path, &binary_output);
    if (name == "signature_name") return Text(value, path, &signature);
    if (name == "priority") {
      FLOE_RETURN_IF_ERROR(Number(value, path, &number));
      if (number > 0) form_.priority = static_cast<int>(std::min<int64_t>(number, kPriorities));
    } else if (name == "timeout") {
      FLOE_RETURN_IF_ERROR(Number(value, path, &number));
      form_.timeout = std::min(std::chrono::microseconds(number), kLongestWish);
    } else if (name.starts_with("sequence_")) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.Text(), ": sequences are not offered; models keep no state"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutput(JsonValue value, JsonPath* path) {
    OutputJson& output = outputs.emplace_back();
    return ForNamed(value, path, [&](std::string_view key, JsonValue one) -> absl::Status {
      if (key == "name") return Text(one, *path, &output.name);
      if (key != "parameters") return absl::OkStatus();
      return ForNamed(one, path, [&](std::string_view name, JsonValue is) -> absl::Status {
        bool yes = false;
        if (name == "binary_data") {
          FLOE_RETURN_IF_ERROR(YesNo(is, *path, &yes));
          output.binary = yes;
        } else if (name == "classification") {
          return absl::InvalidArgumentError(
              absl::StrCat(path->Text(), ": classification is not offered; read the output"));
        } else if (name.starts_with("shared_memory")) {
          return absl::InvalidArgumentError(
              absl::StrCat(path->Text(), ": shared memory is not offered"));
        }
        return absl::OkStatus();
      });
    });
  }

  absl::Status ReadInput(JsonValue value, JsonPath* path) {
    InputJson& input = inputs.emplace_back();
    FLOE_RETURN_IF_ERROR(
        ForNamed(value, path, [&](std::string_view key, JsonValue one) -> absl::Status {
          if (key == "name") return Text(one, *path, &input.name);
          if (key == "datatype") return Text(one, *path, &input.datatype);
          if (key == "shape") return ReadShape(one, &input, path);
          if (key == "parameters") return ReadInputParameters(one, &input, path);
          if (key == "data" && std::exchange(input.has_data, true))
            return absl::InvalidArgumentError(absl::StrCat(path->Text(), " is there twice"));
          return absl::OkStatus();
        }));
    if (input.name.empty() || input.datatype.empty() || !input.has_shape)
      return absl::InvalidArgumentError(
          absl::StrCat(path->Text(), ": an input has name, datatype and shape"));
    if (input.shared_memory)
      return absl::InvalidArgumentError(
          absl::StrCat(path->Text(), ": shared memory is not offered; send the values"));
    if (input.has_data != input.binary_bytes.has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path->Text(), input.has_data ? ": both data and binary_data_size; send one"
                                     : ": neither data nor the parameter binary_data_size"));
  }

  absl::Status ReadShape(JsonValue value, InputJson* input, JsonPath* path) {
    if (std::exchange(input->has_shape, true))
      return absl::InvalidArgumentError(absl::StrCat(path->Text(), " is there twice"));
    return ForItems(value, path, [&](JsonValue one) -> absl::Status {
      int64_t dim = 0;
      FLOE_RETURN_IF_ERROR(Number(one, *path, &dim));
      if (input->shape.rank() == kMostJsonDims)
        return absl::InvalidArgumentError(
            absl::StrCat(path->Text(), ": a shape has at most ", kMostJsonDims, " dims"));
      input->shape.push_back(dim);
      return absl::OkStatus();
    });
  }

  absl::Status ReadInputParameters(JsonValue value, InputJson* input, JsonPath* path) {
    return ForNamed(value, path, [&](std::string_view name, JsonValue one) -> absl::Status {
      if (name.starts_with("shared_memory")) input->shared_memory = true;
      if (name != "binary_data_size") return absl::OkStatus();
      int64_t bytes = 0;
      FLOE_RETURN_IF_ERROR(Number(one, *path, &bytes));
      input->binary_bytes = bytes;
      return absl::OkStatus();
    });
  }

  absl::Status ReadInputData(JsonValue value, InputJson* input, Inference* asked, JsonPath* path) {
    object fields;
    if (value.get_object().get(fields) != SUCCESS) return WrongJson(*path, value, "an object");
    return ForFields(fields, path, [&](std::string_view key, JsonValue one) -> absl::Status {
      if (key != "data") return body_.Skip(one, path);
      input->tensor.emplace(FromKServeName(input->datatype), &body_, &asked->storage);
      path->EnterField(key);
      FLOE_RETURN_IF_ERROR(input->tensor->Read(one, path));
      path->Leave();
      return absl::OkStatus();
    });
  }

  JsonBody& body_;
  InferJsonForm& form_;
  bool has_inputs_ = false;
};

// Gives each input that says so its part of the bytes behind the JSON.
absl::Status PlaceBinary(std::string_view tail, std::vector<InputJson>* inputs) {
  std::string_view left = tail;
  for (InputJson& input : *inputs) {
    if (!input.binary_bytes.has_value()) continue;
    const auto bytes = static_cast<uint64_t>(*input.binary_bytes);
    if (bytes > left.size())
      return BadInput(input.name, absl::StrCat("binary_data_size is ", bytes, ", but ", left.size(),
                                               " bytes are left behind the JSON"));
    input.binary = left.substr(0, bytes);
    left.remove_prefix(bytes);
  }
  if (left.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the body has ", tail.size(),
                                                 " bytes behind its JSON, and the inputs' "
                                                 "binary_data_size are ",
                                                 tail.size() - left.size(), " together"));
}

std::string NeedsBytes(const InputJson& input, int64_t needed, const char* what) {
  return absl::StrCat("shape ", input.shape.ToString(), " of ", input.datatype, " needs ", needed,
                      " ", what);
}

absl::Status CheckBinary(const InputJson& input, DType dtype, int64_t elements,
                         CheckedTensor* checked, ValueList* values) {
  if (dtype == DType::kString) {
    const int64_t count = CountPrefixed(input.binary);
    if (count != elements)
      return BadInput(input.name,
                      count < 0
                          ? "its binary data is cut off; expected each string behind its "
                            "length, 4 bytes of little endian"
                          : absl::StrCat(NeedsBytes(input, elements, "strings"), ", got ", count));
    values->kind = ListKind::kPrefixed;
    values->values = count;
    values->bytes = static_cast<int64_t>(input.binary.size());
    values->packed = input.binary;
    checked->bytes = DecodedBytes(*values, dtype, elements);
    return absl::OkStatus();
  }
  const int64_t bytes = elements * static_cast<int64_t>(DTypeSize(dtype));
  if (static_cast<int64_t>(input.binary.size()) != bytes)
    return BadInput(input.name, absl::StrCat(NeedsBytes(input, bytes, "bytes"),
                                             ", binary_data_size is ", input.binary.size()));
  FLOE_RETURN_IF_ERROR(CheckBools(input.name, "binary data", dtype, input.binary));
  checked->view.data = const_cast<char*>(input.binary.data());
  return absl::OkStatus();
}

absl::Status CheckData(InputJson* input, int64_t elements, CheckedTensor* checked) {
  JsonTensor& tensor = *input->tensor;
  const bool flat = tensor.dims().size() == 1;
  if (tensor.elements() != elements || (!flat && Shape(tensor.dims()) != input->shape))
    return BadInput(input->name,
                    absl::StrCat(NeedsBytes(*input, elements, "values"), ", data has shape ",
                                 Shape(tensor.dims()).ToString()));
  TensorView view;
  tensor.Finish(SymShape(input->shape), &view);
  checked->view.data = view.data;
  return absl::OkStatus();
}

absl::Status CheckDatatype(const InputJson& input, size_t index, const Inference& asked,
                           const InputReader& reader) {
  const DType taken = asked.signature->def().inputs[index].type.dtype;
  DType sent = FromKServeName(input.datatype);
  if (sent == DType::kInvalid)
    return BadInput(input.name, absl::StrCat("datatype ", Quoted(input.datatype),
                                             " is unknown; expected ", KServeName(taken)));
  if (sent == PlainDType(taken)) sent = taken;
  return reader.CheckDType(input.name, index, sent, KServeName);
}

absl::Status TakeJsonInput(InputJson* input, size_t index, Inference* asked, InputReader* reader) {
  const DType dtype = asked->signature->def().inputs[index].type.dtype;
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(input->name, dtype, input->shape));
  CheckedTensor checked{{dtype, input->shape, nullptr}};
  ValueList values;
  FLOE_RETURN_IF_ERROR(input->binary_bytes.has_value()
                           ? CheckBinary(*input, dtype, elements, &checked, &values)
                           : CheckData(input, elements, &checked));
  if (input->tensor.has_value()) asked->held_bytes += static_cast<size_t>(input->tensor->bytes());
  return reader->Take(index, checked, std::move(values));
}

absl::Status ChooseJsonOutputs(const InferBody& body, Inference* asked, InferJsonForm* form) {
  absl::InlinedVector<std::string_view, kUsualTensors> names;
  for (const OutputJson& output : body.outputs) names.push_back(output.name);
  FLOE_RETURN_IF_ERROR(ChooseOutputs(names, asked));
  for (size_t i = 0; i < asked->outputs.size(); ++i) {
    const SignatureTensor& output =
        asked->signature->def().outputs[static_cast<size_t>(asked->outputs[i])];
    if (*KServeName(output.type.dtype) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quoted(output.key), " is ", DTypeName(output.type.dtype),
                       ", which KServe v2 has no datatype for; ask for other outputs"));
    form->binary.push_back(i < body.outputs.size()
                               ? body.outputs[i].binary.value_or(body.binary_output)
                               : body.binary_output);
  }
  return absl::OkStatus();
}

void AppendPrefixed(const TensorView& view, std::string* out) {
  for (int64_t i = 0, n = view.elements(); i < n; ++i) {
    const std::string& text = view.as<std::string>()[i];
    const auto size = static_cast<uint32_t>(text.size());
    char prefix[sizeof size];
    for (size_t k = 0; k < sizeof size; ++k) prefix[k] = static_cast<char>(size >> (8 * k));
    out->append(prefix, sizeof prefix);
    *out += text;
  }
}

int64_t BinaryBytes(const TensorView& view) {
  if (view.dtype != DType::kString) return static_cast<int64_t>(view.bytes());
  int64_t bytes = 0;
  for (int64_t i = 0, n = view.elements(); i < n; ++i)
    bytes += static_cast<int64_t>(sizeof(uint32_t) + view.as<std::string>()[i].size());
  return bytes;
}

absl::Status CheckUtf8(const SignatureTensor& output, const TensorView& view) {
  if (view.dtype != DType::kString) return absl::OkStatus();
  for (int64_t i = 0, n = view.elements(); i < n; ++i) {
    const std::string& text = view.as<std::string>()[i];
    if (!simdjson::validate_utf8(text.data(), text.size()))
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Quoted(output.key),
                       " has strings that are no UTF-8, which JSON "
                       "cannot carry; ask for it with the parameter binary_data: true"));
  }
  return absl::OkStatus();
}

void AppendOutputJson(const SignatureTensor& output, const TensorView& view, bool binary,
                      std::string* reply) {
  *reply += R"({"name":)";
  AppendJsonString(output.key, reply);
  absl::StrAppend(reply, R"(,"datatype":")", KServeName(view.dtype), R"(","shape":[)");
  for (int i = 0; i < view.shape.rank(); ++i)
    absl::StrAppend(reply, i == 0 ? "" : ",", view.shape.dim(i));
  if (binary) {
    absl::StrAppend(reply, R"(],"parameters":{"binary_data_size":)", BinaryBytes(view), "}}");
    return;
  }
  *reply += R"(],"data":)";
  const TensorView flat = {PlainDType(view.dtype), Shape({view.elements()}), view.data};
  AppendJsonTensor(flat, 0, 0, false, reply);
  reply->push_back('}');
}

}  // namespace

absl::Status DecodeInferJson(std::string_view bytes, size_t json_bytes, const ModelSpec& spec,
                             const MemoryBudget* memory, FindServed find, Inference* asked,
                             InferJsonForm* form) {
  FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
  if (json_bytes > bytes.size())
    return absl::InvalidArgumentError(absl::StrCat("Inference-Header-Content-Length is ",
                                                   json_bytes, ", and the body has ", bytes.size(),
                                                   " bytes"));
  JsonBody json;
  InferBody body(&json, form);
  FLOE_RETURN_IF_ERROR(json.Open(bytes.substr(0, json_bytes), memory));
  FLOE_RETURN_IF_ERROR(body.Read());
  FLOE_RETURN_IF_ERROR(ChooseSignature(served->model(), body.signature, asked));
  FLOE_RETURN_IF_ERROR(ChooseJsonOutputs(body, asked, form));
  FLOE_RETURN_IF_ERROR(PlaceBinary(bytes.substr(json_bytes), &body.inputs));
  absl::InlinedVector<std::string_view, kUsualTensors> names;
  for (const InputJson& input : body.inputs) {
    if (std::find(names.begin(), names.end(), input.name) != names.end())
      return BadInput(input.name, "it was sent twice");
    names.push_back(input.name);
  }
  TensorIndices sent;
  FLOE_RETURN_IF_ERROR(PlaceInputs(names, asked, &sent));
  asked->held_bytes = bytes.size();
  InputReader reader(asked);
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] >= 0)
      FLOE_RETURN_IF_ERROR(
          CheckDatatype(body.inputs[static_cast<size_t>(sent[i])], i, *asked, reader));
  FLOE_RETURN_IF_ERROR(body.ReadData(asked));
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] >= 0)
      FLOE_RETURN_IF_ERROR(
          TakeJsonInput(&body.inputs[static_cast<size_t>(sent[i])], i, asked, &reader));
  return reader.Decode();
}

absl::Status EncodeInferJson(const Inference& asked, Outputs outputs, const InferJsonForm& form,
                             const MemoryBudget* memory, std::string* reply, size_t* json_bytes) {
  const SignatureDef& def = asked.signature->def();
  if (outputs.size() != def.outputs.size())
    return absl::InternalError(absl::StrCat(ModelAndSignature(asked), " gave ", outputs.size(),
                                            " outputs instead of ", def.outputs.size()));
  int64_t bytes = 0;
  for (size_t i = 0; i < asked.outputs.size(); ++i) {
    const auto index = static_cast<size_t>(asked.outputs[i]);
    bytes += form.binary[i] ? BinaryBytes(outputs[index]) : JsonBytes(outputs[index]);
    if (!form.binary[i]) FLOE_RETURN_IF_ERROR(CheckUtf8(def.outputs[index], outputs[index]));
  }
  MemoryShare writing;
  constexpr int64_t kSmallReply = int64_t{64} << 10;
  if (memory != nullptr && bytes > kSmallReply) {
    FLOE_ASSIGN_OR_RETURN(writing, memory->Take(bytes));
  }
  const ModelInfo& info = asked.model->info();
  constexpr size_t kHeadBytes = 1024;
  reply->clear();
  reply->reserve(static_cast<size_t>(bytes) + kHeadBytes);
  *reply += R"({"model_name":)";
  AppendJsonString(info.name, reply);
  absl::StrAppend(reply, R"(,"model_version":")", info.version, R"(")");
  if (!form.id.empty()) {
    *reply += R"(,"id":)";
    AppendJsonString(form.id, reply);
  }
  *reply += R"(,"outputs":[)";
  for (size_t i = 0; i < asked.outputs.size(); ++i) {
    const auto index = static_cast<size_t>(asked.outputs[i]);
    if (i > 0) reply->push_back(',');
    AppendOutputJson(def.outputs[index], outputs[index], form.binary[i], reply);
  }
  *reply += "]}";
  *json_bytes = reply->size();
  for (size_t i = 0; i < asked.outputs.size(); ++i) {
    const TensorView& view = outputs[static_cast<size_t>(asked.outputs[i])];
    if (!form.binary[i]) continue;
    if (view.dtype == DType::kString)
      AppendPrefixed(view, reply);
    else if (view.bytes() > 0)
      reply->append(view.as<char>(), view.bytes());
  }
  return absl::OkStatus();
}

}  // namespace floe::server
