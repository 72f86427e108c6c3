// Checks the parts of a ModelInferRequest against the model's signature.
#include "server/request/decode_infer.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/request/input_reader.h"
#include "server/request/kserve_types.h"

namespace floe::server {
namespace {

// int_contents of INT8, for one, may have values that are none.
absl::Status CheckNarrow(std::string_view key, DType dtype, const char* list,
                         const ValueList& values) {
  const size_t size = DTypeSize(dtype);
  if (values.kind != ListKind::kVarint || size > 2 || dtype == DType::kBool)
    return absl::OkStatus();
  const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16;
  const int64_t most = (int64_t{1} << (8 * size - (is_signed ? 1 : 0))) - 1;
  const int64_t least = is_signed ? -most - 1 : 0;
  absl::Status status;
  ForEachVarintOf(values, [&](uint64_t value) {
    const auto number = static_cast<int64_t>(value);
    if (status.ok() && (number < least || number > most))
      status = BadInput(key, absl::StrCat(list, " holds ", number, ", but ", KServeName(dtype),
                                          " is ", least, " to ", most));
  });
  return status;
}

std::string Needs(const InferFields::Input& input, DType dtype, int64_t elements) {
  return absl::StrCat("shape ", input.shape.ToString(), " of ", KServeName(dtype), " needs ",
                      elements);
}

// Values in the list of the dtype. As Triton, and unlike Predict, exactly as many as elements.
absl::Status CheckContents(const InferFields::Input& input, DType dtype, int64_t elements,
                           CheckedTensor* out) {
  const ValueList& sent = input.contents;
  const ContentsList list = ContentsListOf(dtype);
  if (list.field == 0 && elements > 0)
    return BadInput(input.name, absl::StrCat(KServeName(dtype),
                                             " has no list in contents; send raw_input_contents"));
  if (sent.several_fields) return BadInput(input.name, "values in more than one list of contents");
  if (sent.values != 0 && sent.field != list.field)
    return BadInput(input.name, absl::StrCat("values in ", ContentsListAt(sent.field).name,
                                             ", but ", KServeName(dtype), " is read from ",
                                             list.name, " or raw_input_contents"));
  if (sent.values != elements)
    return BadInput(input.name,
                    absl::StrCat(Needs(input, dtype, elements), " values in ", list.name,
                                 " or raw_input_contents, got ", sent.values));
  FLOE_RETURN_IF_ERROR(CheckNarrow(input.name, dtype, list.name, sent));
  const bool fixed = list.kind == ListKind::kFixed32 || list.kind == ListKind::kFixed64;
  if (fixed && !sent.packed.empty()) {
    out->view.data = const_cast<char*>(sent.packed.data());
  } else {
    out->bytes = DecodedBytes(sent, dtype, elements);
  }
  return absl::OkStatus();
}

absl::Status CheckRaw(std::string_view raw, int64_t elements, InferFields::Input* input,
                      CheckedTensor* out) {
  const DType dtype = out->view.dtype;
  if (input->contents.values != 0)
    return BadInput(input->name, "values in both contents and raw_input_contents; send one");
  if (dtype == DType::kString) {
    const int64_t count = CountPrefixed(raw);
    if (count < 0)
      return BadInput(input->name,
                      "raw_input_contents of BYTES is cut off; expected each string behind its "
                      "length, 4 bytes of little endian");
    if (count != elements)
      return BadInput(input->name, absl::StrCat(Needs(*input, dtype, elements),
                                                " strings in raw_input_contents, got ", count));
    input->contents.kind = ListKind::kPrefixed;
    input->contents.values = count;
    input->contents.bytes = static_cast<int64_t>(raw.size());
    input->contents.packed = raw;
    out->bytes = DecodedBytes(input->contents, dtype, elements);
    return absl::OkStatus();
  }
  const int64_t bytes = elements * static_cast<int64_t>(DTypeSize(dtype));
  if (static_cast<int64_t>(raw.size()) != bytes)
    return BadInput(input->name, absl::StrCat(Needs(*input, dtype, bytes),
                                              " bytes of raw_input_contents, got ", raw.size()));
  FLOE_RETURN_IF_ERROR(CheckBools(input->name, "raw_input_contents", dtype, raw));
  out->view.data = const_cast<char*>(raw.data());
  return absl::OkStatus();
}

// Compares an input with the signature's, which has that index. `raw`: null where there are none.
absl::Status TakeInferInput(InferFields::Input* input, const std::string_view* raw, size_t index,
                            const Inference& asked, InputReader* reader) {
  if (input->shared_memory)
    return BadInput(input->name, "shared memory is not offered; send its values");
  const DType taken = asked.signature->def().inputs[index].type.dtype;
  DType dtype = FromKServeName(input->datatype);
  if (dtype == DType::kInvalid)
    return BadInput(input->name, absl::StrCat("datatype ", Quoted(input->datatype),
                                              " is unknown; expected ", KServeName(taken)));
  if (dtype == PlainDType(taken)) dtype = taken;
  FLOE_RETURN_IF_ERROR(reader->CheckDType(input->name, index, dtype, KServeName));
  if (input->shape_too_long)
    return BadInput(input->name, absl::StrCat("its shape has more than ", kMostInferDims, " dims"));
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(input->name, dtype, input->shape));
  CheckedTensor checked{{dtype, input->shape, nullptr}};
  FLOE_RETURN_IF_ERROR(raw != nullptr ? CheckRaw(*raw, elements, input, &checked)
                                      : CheckContents(*input, dtype, elements, &checked));
  return reader->Take(index, checked, std::move(input->contents));
}

// Signatures may have more dtypes than KServe v2 knows.
absl::Status CheckNameable(const Inference& asked) {
  const SignatureDef& def = asked.signature->def();
  const auto unknown = [&](const char* what, const SignatureTensor& tensor) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", Quoted(tensor.key), " of ", ModelAndSignature(asked), " is ",
                     DTypeName(tensor.type.dtype),
                     ", which KServe v2 has no datatype for; ask for other outputs, or call "
                     "tensorflow.serving.PredictionService"));
  };
  for (const SignatureTensor& input : def.inputs)
    if (!input.optional && *KServeName(input.type.dtype) == 0) return unknown("input", input);
  for (const int index : asked.outputs)
    if (const SignatureTensor& output = def.outputs[static_cast<size_t>(index)];
        *KServeName(output.type.dtype) == 0)
      return unknown("output", output);
  return absl::OkStatus();
}

absl::Status CheckCounts(const InferFields& fields, const TensorIndices& sent) {
  if (!fields.raw.empty() && fields.raw.size() != fields.inputs.size())
    return absl::InvalidArgumentError(
        absl::StrCat("raw_input_contents has ", fields.raw.size(), " entries for ",
                     fields.inputs.size(), " inputs; expected one for each, in their order"));
  for (size_t i = 0; i < fields.inputs.size(); ++i)
    if (std::find(sent.begin(), sent.end(), static_cast<int>(i)) == sent.end())
      return BadInput(fields.inputs[i].name, "it was sent twice");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> KServeVersion(std::string_view version) {
  if (version.empty()) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(version.data(), version.data() + version.size(), number);
  if (error == std::errc() && end == version.data() + version.size()) return number;
  return absl::InvalidArgumentError(absl::StrCat(
      "version ", Quoted(version), " is no number; leave it empty for the newest version"));
}

absl::Status DecodeInfer(std::string_view message, FindModel find, Inference* asked,
                         InferWishes* wishes) {
  InferFields fields;
  FLOE_RETURN_IF_ERROR(ReadInferFields(message, &fields, wishes));
  FLOE_ASSIGN_OR_RETURN(const std::optional<int64_t> version, KServeVersion(fields.version));
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, find({fields.model, version, {}}));
  FLOE_RETURN_IF_ERROR(ChooseSignature(std::move(model), fields.signature, asked));
  FLOE_RETURN_IF_ERROR(ChooseOutputs(fields.outputs, asked));
  FLOE_RETURN_IF_ERROR(CheckNameable(*asked));
  absl::InlinedVector<std::string_view, kUsualTensors> names;
  for (const InferFields::Input& input : fields.inputs) names.push_back(input.name);
  TensorIndices sent;
  FLOE_RETURN_IF_ERROR(PlaceInputs(names, asked, &sent));
  FLOE_RETURN_IF_ERROR(CheckCounts(fields, sent));
  asked->held_bytes = message.size();
  wishes->typed = fields.raw.empty() && !fields.inputs.empty();
  InputReader reader(asked);
  for (size_t i = 0; i < sent.size(); ++i) {
    if (sent[i] < 0) continue;
    const auto k = static_cast<size_t>(sent[i]);
    FLOE_RETURN_IF_ERROR(TakeInferInput(
        &fields.inputs[k], fields.raw.empty() ? nullptr : &fields.raw[k], i, *asked, &reader));
  }
  return reader.Decode();
}

}  // namespace floe::server
