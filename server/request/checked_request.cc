// Names, dtypes and shapes of a request are checked against the signature before anything is
// allocated for them.
#include "server/request/checked_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/input_shape.h"
#include "server/request/names.h"

namespace floe::server {
namespace {

// Larger ones are not decoded at once, nor are those filled up that become larger than this: a
// request that waits should hold no more than was sent.
constexpr int64_t kDecodedAtOnce = int64_t{1} << 20;
constexpr int64_t kFilledAtOnce = int64_t{16} << 10;

std::vector<std::string> RequestKeys(const ParsedRequest& request) {
  std::vector<std::string> keys;
  for (const ParsedInput& input : request.inputs) keys.emplace_back(input.key);
  std::sort(keys.begin(), keys.end());  // protobuf's maps have no order of their own
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// "'x', 'y' (optional)".
std::string TakenInputs(const std::vector<SignatureTensor>& inputs) {
  std::string text;
  for (const SignatureTensor& input : inputs) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", Quoted(input.key),
                    input.optional ? " (optional)" : "");
  }
  return text.empty() ? "(none)" : text;
}

}  // namespace

std::vector<std::string> Keys(const std::vector<SignatureTensor>& tensors) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const SignatureTensor& tensor : tensors) keys.push_back(tensor.key);
  return keys;
}

std::string CheckedRequest::ModelAndSignature() const {
  const ModelInfo& info = model_->info();
  return absl::StrCat("model ", Quoted(info.name), " version ", info.version, ", signature ",
                      Quoted(signature_->def().name));
}

absl::Status CheckedRequest::ChooseSignature(ModelHandle model) {
  model_ = std::move(model);
  signature_ = model_->Find(parsed_.signature);
  if (signature_ != nullptr) return absl::OkStatus();
  const auto left_out = model_->left_out().find(
      parsed_.signature.empty() ? "serving_default" : std::string(parsed_.signature));
  if (left_out != model_->left_out().end())
    return absl::FailedPreconditionError(
        absl::StrCat("model ", Quoted(model_->info().name), " version ", model_->info().version,
                     " does not serve signature ", Quoted(left_out->first), ": ",
                     std::string(left_out->second.message())));
  std::vector<std::string> names;
  for (const auto& [name, signature] : model_->signatures()) names.push_back(name);
  return absl::FailedPreconditionError(
      absl::StrCat("model ", Quoted(model_->info().name), " version ", model_->info().version,
                   " has no signature ",
                   Quoted(parsed_.signature.empty() ? "serving_default" : parsed_.signature),
                   "; it has ", QuotedList(names)));
}

absl::Status CheckedRequest::ChooseOutputs(OutputIndices* outputs) const {
  const auto& has = signature_->def().outputs;
  if (parsed_.output_filter.empty()) {
    for (size_t i = 0; i < has.size(); ++i) outputs->push_back(static_cast<int>(i));
    return absl::OkStatus();
  }
  for (const std::string_view alias : parsed_.output_filter) {
    const int index = signature_->FindOutput(alias);
    if (index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("output_filter: ", ModelAndSignature(), " has no output ", Quoted(alias),
                       NearestHint(alias, Keys(has)), "; it has ", QuotedList(Keys(has))));
    }
    if (std::find(outputs->begin(), outputs->end(), index) != outputs->end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output_filter names output ", Quoted(alias), " twice"));
    }
    outputs->push_back(index);
  }
  return absl::OkStatus();
}

absl::Status CheckedRequest::WrongInputs() const {
  const auto& taken = signature_->def().inputs;
  std::string hints;
  for (const ParsedInput& input : parsed_.inputs) {
    if (signature_->FindInput(input.key) >= 0) continue;
    hints = absl::StrCat("; unknown ", Quoted(input.key), NearestHint(input.key, Keys(taken)));
    break;  // one hint: the lists show the rest
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ModelAndSignature(), " takes inputs ", TakenInputs(taken), ", but ",
                   QuotedList(RequestKeys(parsed_)), " were sent", hints));
}

absl::Status CheckedRequest::CheckInput(const ParsedInput& input, size_t index, Request* request) {
  const SignatureTensor& taken = signature_->def().inputs[index];
  FLOE_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(input.key, input.tensor));
  if (dtype != taken.type.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(input.key), ": ", ModelAndSignature(), " takes ",
                     DTypeName(taken.type.dtype), ", but ", DTypeName(dtype), " was sent"));
  }
  FLOE_ASSIGN_OR_RETURN(const CheckedTensor checked, CheckTensor(input.key, input.tensor));
  FLOE_RETURN_IF_ERROR(CheckInputShape(taken, checked.view.shape));
  FLOE_RETURN_IF_ERROR(storage_.Charge(checked.bytes));
  request->inputs[index] = checked.view;
  if (checked.view.data != nullptr) return absl::OkStatus();
  // What may be a default is compared with it before the request waits.
  const bool compared =
      taken.default_value.valid() && taken.default_value.shape() == checked.view.shape;
  const bool later = checked.bytes > (checked.repeats ? kFilledAtOnce : kDecodedAtOnce);
  if (later && !compared) {
    later_.push_back({&input.tensor, index});
    pending_bytes_ += checked.bytes;
  } else {
    now_.push_back({&input.tensor, index});
  }
  return absl::OkStatus();
}

absl::Status CheckedRequest::DecodeInputs(const std::vector<Encoded>& inputs, Request* request) {
  for (const Encoded& encoded : inputs)
    FLOE_RETURN_IF_ERROR(DecodeTensor(*encoded.tensor, &storage_, &request->inputs[encoded.index]));
  return absl::OkStatus();
}

absl::Status CheckedRequest::Fill(Request* request) {
  const auto& taken = signature_->def().inputs;
  absl::InlinedVector<const ParsedInput*, kUsualTensors> sent(taken.size(), nullptr);
  for (const ParsedInput& input : parsed_.inputs) {
    const int index = signature_->FindInput(input.key);
    if (index < 0) return WrongInputs();
    sent[static_cast<size_t>(index)] = &input;
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    if (sent[i] == nullptr && !taken[i].optional) return WrongInputs();
  }
  request->model = model_;
  request->signature = signature_;
  request->inputs.resize(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    if (sent[i] == nullptr) continue;
    FLOE_RETURN_IF_ERROR(CheckInput(*sent[i], i, request));
  }
  FLOE_RETURN_IF_ERROR(DecodeInputs(now_, request));
  if (!later_.empty())
    request->pending =
        std::make_unique<PendingInputs>([this, request] { return DecodeInputs(later_, request); });
  return absl::OkStatus();
}

}  // namespace floe::server
