// Reads a PredictRequest: first where its parts lie, then each against the model's signature.
// Values are decoded last, and large ones by the worker that runs the request.
#include "server/request/decode_predict.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "runtime/input_shape.h"

namespace floe::server {
namespace {

constexpr size_t kMaxNames = 4096;  // of inputs and outputs in a request

// Version and label are one of a oneof: the later one counts.
bool ParseModelSpec(std::string_view message, PredictFields* out) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 4 || type != WireType::kBytes) {
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ReadBytes(&part)) return false;
    switch (field) {
      case 1:
        out->model.name = part;
        break;
      case 2:
        out->model.label = {};
        if (!out->model.version) out->model.version = 0;
        if (!ReadNumber(part, 1, &*out->model.version)) return false;
        break;
      case 3:
        out->signature = part;
        break;
      default:
        out->model.version.reset();
        out->model.label = part;
        break;
    }
  }
  return true;
}

// An entry of the map of inputs.
bool ParseInput(std::string_view message, PredictFields* out) {
  WireReader reader(message);
  PredictFields::Input& input = out->inputs.emplace_back();
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    if (field > 2 || type != WireType::kBytes) {
      if (!reader.Skip()) return false;
      continue;
    }
    if (!reader.ReadBytes(&part)) return false;
    if (field == 1) {
      input.key = part;
    } else if (!ParseTensor(part, &input.tensor)) {
      return false;
    }
  }
  return true;
}

bool ParseField(uint32_t field, WireType type, WireReader& reader, PredictFields* out) {
  if (field > 3 || type != WireType::kBytes) return reader.Skip();
  std::string_view part;
  if (!reader.ReadBytes(&part)) return false;
  if (field == 1) return ParseModelSpec(part, out);
  if (field == 2) return ParseInput(part, out);
  out->output_filter.push_back(part);
  return true;
}

// An input whose values do not lie in the message as they are needed.
struct Encoded {
  ParsedTensor tensor;
  size_t index;
};

absl::Status DecodeInputs(absl::Span<const Encoded> inputs, Request* request) {
  for (const Encoded& input : inputs)
    FLOE_RETURN_IF_ERROR(
        DecodeTensor(input.tensor, &request->storage, &request->inputs[input.index]));
  return absl::OkStatus();
}

// Fills the inputs of a request, which has its signature.
class InputReader {
 public:
  explicit InputReader(Request* request) : request_(*request) {}

  // Compares an input with the signature's, which has that index.
  absl::Status Check(PredictFields::Input&& input, size_t index) {
    const SignatureTensor& taken = request_.signature->def().inputs[index];
    FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(input.key, input.tensor));
    if (dtype != taken.type.dtype)
      return absl::InvalidArgumentError(
          absl::StrCat("input ", Quoted(input.key), ": ", ModelAndSignature(request_), " takes ",
                       DTypeName(taken.type.dtype), ", but ", DTypeName(dtype), " was sent"));
    FLOE_ASSIGN_OR_RETURN(const CheckedTensor checked, CheckTensor(input.key, input.tensor));
    FLOE_RETURN_IF_ERROR(CheckInputShape(taken, checked.view.shape));
    FLOE_RETURN_IF_ERROR(request_.storage.Charge(checked.bytes));
    request_.inputs[index] = checked.view;
    if (checked.view.data != nullptr) return absl::OkStatus();
    // What may be a default is compared with it before the request waits.
    const bool compared =
        taken.default_value.valid() && taken.default_value.shape() == checked.view.shape;
    const bool large =
        checked.bytes > (checked.repeats ? tuning::kFilledAtOnce : tuning::kDecodedAtOnce);
    const bool later = large && !compared;
    if (!later) request_.held_bytes += static_cast<size_t>(checked.bytes);
    (later ? later_ : now_).push_back({std::move(input.tensor), index});
    return absl::OkStatus();
  }

  // Once all are checked.
  absl::Status Decode() {
    FLOE_RETURN_IF_ERROR(DecodeInputs(now_, &request_));
    if (later_.empty()) return absl::OkStatus();
    request_.pending = std::make_unique<PendingInputs>(
        [later = std::move(later_), request = &request_] { return DecodeInputs(later, request); });
    return absl::OkStatus();
  }

 private:
  Request& request_;
  std::vector<Encoded> now_, later_;
};

}  // namespace

absl::Status DecodePredict(std::string_view message, FindModel find, Request* request) {
  PredictFields fields;
  FLOE_RETURN_IF_ERROR(ReadPredictFields(message, &fields));
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, find(fields.model));
  FLOE_RETURN_IF_ERROR(ChooseSignature(std::move(model), fields.signature, request));
  FLOE_RETURN_IF_ERROR(ChooseOutputs(fields.output_filter, request));
  absl::InlinedVector<std::string_view, kUsualTensors> keys;
  for (const PredictFields::Input& input : fields.inputs) keys.push_back(input.key);
  TensorIndices sent;
  FLOE_RETURN_IF_ERROR(PlaceInputs(keys, request, &sent));
  request->held_bytes = message.size();
  InputReader reader(request);
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] >= 0)
      FLOE_RETURN_IF_ERROR(reader.Check(std::move(fields.inputs[static_cast<size_t>(sent[i])]), i));
  return reader.Decode();
}

absl::Status ReadPredictFields(std::string_view message, PredictFields* fields) {
  if (message.size() > INT32_MAX)
    return absl::InvalidArgumentError("the request is larger than 2 GiB");
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    if (!reader.ReadTag(&field, &type) || !ParseField(field, type, reader, fields))
      return absl::InvalidArgumentError(
          "the request is not a valid tensorflow.serving.PredictRequest");
    if (fields->inputs.size() + fields->output_filter.size() > kMaxNames)
      return absl::InvalidArgumentError(
          absl::StrCat("the request names more than ", kMaxNames, " inputs and outputs"));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
