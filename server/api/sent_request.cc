#include "server/api/sent_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/names.h"

namespace floe::server {
namespace {

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

absl::Status SentRequest::ReadInput(const SentInput& input, const SignatureTensor& taken,
                                    TensorView* view) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, SentDtype(input.key, input.tensor));
  if (dtype != taken.type.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", Quoted(input.key), ": ", ModelAndSignature(), " takes ",
                     DTypeName(taken.type.dtype), ", but ", DTypeName(dtype), " was sent"));
  }
  FLOE_ASSIGN_OR_RETURN(*view, ReadTensor(input.key, input.tensor, &storage_));
  return absl::OkStatus();
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
    FLOE_RETURN_IF_ERROR(ReadInput(*sent[i], taken[i], &request->inputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace floe::server
