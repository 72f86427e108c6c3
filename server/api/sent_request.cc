#include "server/api/sent_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/input_shape.h"
#include "server/api/names.h"

namespace floe::server {
namespace {

// Larger ones are not decoded at once, nor are those filled up that become larger than this: a
// request that waits should hold no more than was sent.
constexpr int64_t kDecodedAtOnce = int64_t{1} << 20;
constexpr int64_t kFilledAtOnce = int64_t{16} << 10;

std::vector<std::string> SentKeys(const SentPredict& sent) {
  std::vector<std::string> keys;
  for (const SentInput& input : sent.inputs) keys.emplace_back(input.key);
  std::sort(keys.begin(), keys.end());  // protobuf's maps have no order of their own
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

std::string SentRequest::ModelAndSignature() const {
  const ModelInfo& info = model_->info();
  return absl::StrCat("model ", Quoted(info.name), " version ", info.version, ", signature ",
                      Quoted(signature_->def().name));
}

absl::Status SentRequest::ChooseSignature(ModelHandle model) {
  model_ = std::move(model);
  signature_ = model_->Find(sent_.signature);
  if (signature_ != nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const auto& [name, signature] : model_->signatures()) names.push_back(name);
  return absl::FailedPreconditionError(absl::StrCat(
      "model ", Quoted(model_->info().name), " version ", model_->info().version,
      " has no signature ", Quoted(sent_.signature.empty() ? "serving_default" : sent_.signature),
      "; it has ", QuotedNames(names)));
}

absl::Status SentRequest::ChooseOutputs(Outputs* outputs) const {
  const auto& has = signature_->def().outputs;
  if (sent_.output_filter.empty()) {
    for (size_t i = 0; i < has.size(); ++i) outputs->push_back(static_cast<int>(i));
    return absl::OkStatus();
  }
  for (const std::string_view alias : sent_.output_filter) {
    const int index = signature_->FindOutput(alias);
    if (index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("output_filter: ", ModelAndSignature(), " has no output ", Quoted(alias),
                       NearestHint(alias, Keys(has)), "; it has ", QuotedNames(Keys(has))));
    }
    if (std::find(outputs->begin(), outputs->end(), index) != outputs->end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output_filter names output ", Quoted(alias), " twice"));
    }
    outputs->push_back(index);
  }
  return absl::OkStatus();
}

absl::Status SentRequest::WrongInputs() const {
  const auto& taken = signature_->def().inputs;
  std::string hints;
  for (const SentInput& input : sent_.inputs) {
    if (signature_->FindInput(input.key) >= 0) continue;
    hints = absl::StrCat("; unknown ", Quoted(input.key), NearestHint(input.key, Keys(taken)));
    break;  // one hint: the lists show the rest
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ModelAndSignature(), " takes inputs ", TakenInputs(taken), ", but ",
                   QuotedNames(SentKeys(sent_)), " were sent", hints));
}

absl::Status SentRequest::Read(std::string_view message) {
  FLOE_RETURN_IF_ERROR(ReadPredictRequest(message, max_input_bytes_, &sent_));
  storage_.Pay(static_cast<int64_t>(sent_.parsed_bytes));
  return absl::OkStatus();
}

bool SentRequest::ReadQuickly(std::string_view message) {
  if (IsQuickToWalk(message) && WalkPredictRequest(message, &sent_)) return true;
  sent_ = SentPredict();
  return false;
}

absl::Status SentRequest::CheckInput(const SentInput& input, size_t index, InferRequest* request) {
  const SignatureTensor& taken = signature_->def().inputs[index];
  FLOE_ASSIGN_OR_RETURN(const DType dtype, SentDtype(input.key, input.tensor));
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

void SentRequest::Decode(const std::vector<Encoded>& inputs, InferRequest* request) {
  for (const Encoded& encoded : inputs)
    DecodeTensor(*encoded.sent, &storage_, &request->inputs[encoded.index]);
}

absl::Status SentRequest::Fill(InferRequest* request) {
  const auto& taken = signature_->def().inputs;
  absl::InlinedVector<const SentInput*, kUsualTensors> sent(taken.size(), nullptr);
  for (const SentInput& input : sent_.inputs) {
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
  Decode(now_, request);
  if (!later_.empty())
    request->pending =
        std::make_unique<PendingInputs>([this, request] { Decode(later_, request); });
  return absl::OkStatus();
}

}  // namespace floe::server
