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

// Larger inputs are decoded by the worker that runs them. So are values that fill up a shape of
// more bytes: a request that waits should hold no more than was sent.
constexpr int64_t kDecodedAtOnce = int64_t{1} << 20;
constexpr int64_t kFilledAtOnce = int64_t{16} << 10;

// Calls visit(field, bytes) for each length-delimited field up to number `last`. False: the bytes
// are no message, or a visit said so.
template <typename Visit>
bool ForEachPart(std::string_view message, uint32_t last, Visit visit) {
  WireReader reader(message);
  while (!reader.Done()) {
    uint32_t field;
    WireType type;
    std::string_view part;
    if (!reader.ReadTag(&field, &type)) return false;
    const bool known = field <= last && type == WireType::kBytes;
    if (known ? !reader.ReadBytes(&part) || !visit(field, part) : !reader.Skip()) return false;
  }
  return true;
}

// Version and label are one of a oneof: the later one counts.
bool ParseModelSpec(std::string_view message, PredictFields* out) {
  return ForEachPart(message, 4, [out](uint32_t field, std::string_view part) {
    switch (field) {
      case 1:
        out->model.name = part;
        return true;
      case 2:
        out->model.label = {};
        if (!out->model.version) out->model.version = 0;
        return ReadNumber(part, 1, &*out->model.version);
      case 3:
        out->signature = part;
        return true;
      default:
        out->model.version.reset();
        out->model.label = part;
        return true;
    }
  });
}

// An entry of the map of inputs.
bool ParseInput(std::string_view message, PredictFields* out) {
  PredictFields::Input& input = out->inputs.emplace_back();
  return ForEachPart(message, 2, [&input](uint32_t field, std::string_view part) {
    if (field != 1) return ParseTensor(part, &input.tensor);
    input.key = part;
    return true;
  });
}

// An input whose values do not lie in the message as they are needed.
struct Encoded {
  ParsedTensor tensor;
  size_t index;
};

absl::Status DecodeInputs(absl::Span<const Encoded> inputs, Inference* asked) {
  for (const Encoded& input : inputs)
    FLOE_RETURN_IF_ERROR(DecodeTensor(input.tensor, &asked->storage, &asked->inputs[input.index]));
  return absl::OkStatus();
}

// How NumPy's clients send what is taken; "" where no cast makes sense.
std::string CastHint(DType sent, DType taken) {
  const std::string name = DTypeName(taken);
  if (sent == DType::kString || taken == DType::kString || name.starts_with("q") ||
      name.starts_with("bfloat"))
    return "";

  return absl::StrCat("; cast it first, in NumPy with x.astype(\"", name, "\")");
}

// Fills the inputs of an inference, which has its signature.
class InputReader {
 public:
  explicit InputReader(Inference* asked) : asked_(*asked) {}

  // Compares an input with the signature's, which has that index.
  absl::Status Check(PredictFields::Input&& input, size_t index) {
    const SignatureTensor& taken = asked_.signature->def().inputs[index];
    FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(input.key, input.tensor));
    if (dtype != taken.type.dtype)
      return absl::InvalidArgumentError(
          absl::StrCat("input ", Quoted(input.key), ": ", ModelAndSignature(asked_), " takes ",
                       DTypeName(taken.type.dtype), ", but ", DTypeName(dtype), " was sent",
                       CastHint(dtype, taken.type.dtype)));
    FLOE_ASSIGN_OR_RETURN(const CheckedTensor checked, CheckTensor(input.key, input.tensor));
    FLOE_RETURN_IF_ERROR(CheckInputShape(taken, checked.view.shape));
    FLOE_RETURN_IF_ERROR(asked_.storage.Charge(checked.bytes));
    asked_.inputs[index] = checked.view;
    if (checked.view.data != nullptr) return absl::OkStatus();
    // What may be a default is compared with it before the request waits.
    const bool compared =
        taken.default_value.valid() && taken.default_value.shape() == checked.view.shape;
    const bool large = checked.bytes > (checked.repeats ? kFilledAtOnce : kDecodedAtOnce);
    const bool later = large && !compared;
    if (!later) asked_.held_bytes += static_cast<size_t>(checked.bytes);
    (later ? later_ : now_).push_back({std::move(input.tensor), index});
    return absl::OkStatus();
  }

  // Once all are checked.
  absl::Status Decode() {
    FLOE_RETURN_IF_ERROR(DecodeInputs(now_, &asked_));
    if (later_.empty()) return absl::OkStatus();
    asked_.pending = std::make_unique<PendingInputs>(
        [later = std::move(later_), asked = &asked_] { return DecodeInputs(later, asked); });
    return absl::OkStatus();
  }

 private:
  Inference& asked_;
  std::vector<Encoded> now_, later_;
};

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
      FLOE_RETURN_IF_ERROR(reader.Check(std::move(fields.inputs[static_cast<size_t>(sent[i])]), i));
  return reader.Decode();
}

absl::Status ReadPredictFields(std::string_view message, PredictFields* fields) {
  if (message.size() > INT32_MAX)
    return absl::InvalidArgumentError("the request is larger than 2 GiB");
  bool too_many = false;
  const bool valid = ForEachPart(message, 3, [&](uint32_t field, std::string_view part) {
    if (field == 1) return ParseModelSpec(part, fields);
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
