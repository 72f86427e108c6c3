// Reads a PredictRequest: first where its parts lie, then each against the model's signature.
#include "server/request/decode_predict.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "server/request/model_spec.h"

namespace floe::server {
namespace {

// An entry of the map of inputs.
bool ParseInput(std::string_view message, PredictFields* out) {
  PredictFields::Input& input = out->inputs.emplace_back();
  return ForEachBytesField(message, 2, [&input](uint32_t field, std::string_view part) {
    if (field != 1) return ParseTensor(part, &input.tensor);
    input.key = part;
    return true;
  });
}

// Compares an input with the signature's, which has that index.
absl::Status TakeInput(PredictFields::Input&& input, size_t index, InputReader* reader) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(input.key, input.tensor));
  FLOE_RETURN_IF_ERROR(reader->CheckDType(input.key, index, dtype, DTypeName));
  FLOE_ASSIGN_OR_RETURN(const CheckedTensor checked, CheckTensor(input.key, input.tensor));
  return reader->Take(index, checked, std::move(input.tensor.values));
}

}  // namespace

absl::Status DecodePredict(std::string_view message, FindModel find, Inference* asked) {
  PredictFields fields;
  FLOE_RETURN_IF_ERROR(ReadPredictFields(message, &fields));
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, find(fields.model));
  FLOE_RETURN_IF_ERROR(ChooseSignature(std::move(model), fields.signature, asked));
  FLOE_RETURN_IF_ERROR(ChooseOutputs(fields.output_filter, asked));
  absl::InlinedVector<std::string_view, kUsualTensors> keys;
  for (const PredictFields::Input& input : fields.inputs) keys.push_back(input.key);
  TensorIndices sent;
  FLOE_RETURN_IF_ERROR(PlaceInputs(keys, asked, &sent));
  asked->held_bytes = message.size();
  InputReader reader(asked);
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] >= 0)
      FLOE_RETURN_IF_ERROR(
          TakeInput(std::move(fields.inputs[static_cast<size_t>(sent[i])]), i, &reader));
  return reader.Decode();
}

absl::Status ReadPredictFields(std::string_view message, PredictFields* fields) {
  if (message.size() > INT32_MAX)
    return absl::InvalidArgumentError("the request is larger than 2 GiB");
  bool too_many = false;
  const bool valid = ForEachBytesField(message, 3, [&](uint32_t field, std::string_view part) {
    if (field == 1) return ReadModelSpec(part, &fields->model, &fields->signature);
    if (field == 2 && !ParseInput(part, fields)) return false;
    if (field == 3) fields->output_filter.push_back(part);
    too_many = fields->inputs.size() + fields->output_filter.size() > kMaxNames;
    return !too_many;
  });
  if (too_many)
    return absl::InvalidArgumentError(
        absl::StrCat("the request names more than ", kMaxNames, " inputs and outputs"));
  if (!valid)
    return absl::InvalidArgumentError(
        "the request is not a valid tensorflow.serving.PredictRequest");
  return absl::OkStatus();
}

}  // namespace floe::server
