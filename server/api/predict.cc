#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/api/methods.h"
#include "server/api/names.h"
#include "server/api/predict_reply.h"
#include "server/api/predict_request.h"
#include "server/api/tensor_input.h"

namespace floe::server {
namespace {

constexpr char kReplyKey[] = "floe-reply";  // request metadata: "content" or "typed"

std::vector<std::string> Keys(const std::vector<SignatureTensor>& tensors) {
  std::vector<std::string> keys;
  for (const SignatureTensor& tensor : tensors) keys.push_back(tensor.key);
  return keys;
}

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

// One Predict from its message to its answer. Kept alive by the queued request, whose inputs are
// views into it. It holds the model but not the ServedModel: a worker may be the last to drop it,
// and must not then stop its own queue.
class PredictCall : public std::enable_shared_from_this<PredictCall> {
 public:
  PredictCall(const ApiContext& context, Message message, std::shared_ptr<Responder> responder)
      : registry_(context.registry),
        message_(std::move(message)),
        responder_(std::move(responder)),
        storage_(context.max_input_bytes) {}

  // OK: the answer comes from the model. Otherwise the caller answers.
  absl::Status Start(const CallInfo& call, bool content_replies);

 private:
  absl::StatusOr<ServedHandle> FindModel();
  absl::Status ChooseEncoding(const CallInfo& call);
  absl::Status ChooseOutputs();
  absl::Status ReadInputs(InferRequest* request);
  absl::Status ReadInput(const SentInput& input, const SignatureTensor& taken, TensorView* view);
  absl::Status WrongInputs() const;
  void Answer(const absl::Status& status, absl::Span<const TensorView> outputs);
  absl::StatusOr<std::string> Encode(absl::Span<const TensorView> outputs) const;
  std::string ModelAndSignature() const;

  const ModelRegistry& registry_;
  const Message message_;
  const std::shared_ptr<Responder> responder_;
  SentPredict sent_;
  InputStorage storage_;
  ModelHandle model_;
  const Signature* signature_ = nullptr;
  absl::InlinedVector<int, 4> outputs_;  // indices in the signature, in the order of the reply
  ReplyEncoding encoding_ = ReplyEncoding::kTyped;
};

std::string PredictCall::ModelAndSignature() const {
  const ModelInfo& info = model_->info();
  return absl::StrCat("model ", Quoted(info.name), " version ", info.version, ", signature ",
                      Quoted(signature_->def().name));
}

absl::StatusOr<ServedHandle> PredictCall::FindModel() {
  FLOE_RETURN_IF_ERROR(CheckModelName(registry_, sent_.model));
  FLOE_ASSIGN_OR_RETURN(ServedHandle served,
                        registry_.Acquire(sent_.model, {sent_.version, sent_.version_label}));
  model_ = served->model();
  signature_ = model_->Find(std::string(sent_.signature));
  if (signature_ != nullptr) return served;
  std::vector<std::string> names;
  for (const auto& [name, signature] : model_->signatures()) names.push_back(name);
  return absl::FailedPreconditionError(absl::StrCat(
      "model ", Quoted(sent_.model), " version ", model_->info().version, " has no signature ",
      Quoted(sent_.signature.empty() ? "serving_default" : sent_.signature), "; it has ",
      QuotedNames(names)));
}

absl::Status PredictCall::ChooseEncoding(const CallInfo& call) {
  const std::string* const wish = call.FindMetadata(kReplyKey);
  if (wish == nullptr) return absl::OkStatus();
  if (*wish != "content" && *wish != "typed") {
    return absl::InvalidArgumentError(
        absl::StrCat("metadata ", kReplyKey, " is ", Quoted(*wish), "; use 'content' or 'typed'"));
  }
  encoding_ = *wish == "content" ? ReplyEncoding::kContent : ReplyEncoding::kTyped;
  return absl::OkStatus();
}

absl::Status PredictCall::ChooseOutputs() {
  const auto& outputs = signature_->def().outputs;
  if (sent_.output_filter.empty()) {
    for (size_t i = 0; i < outputs.size(); ++i) outputs_.push_back(static_cast<int>(i));
    return absl::OkStatus();
  }
  for (const std::string_view alias : sent_.output_filter) {
    const int index = signature_->FindOutput(std::string(alias));
    if (index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("output_filter: ", ModelAndSignature(), " has no output ", Quoted(alias),
                       NearestHint(alias, Keys(outputs)), "; it has ", QuotedNames(Keys(outputs))));
    }
    if (std::find(outputs_.begin(), outputs_.end(), index) != outputs_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output_filter names output ", Quoted(alias), " twice"));
    }
    outputs_.push_back(index);
  }
  return absl::OkStatus();
}

absl::Status PredictCall::WrongInputs() const {
  const auto& taken = signature_->def().inputs;
  std::string hints;
  for (const SentInput& input : sent_.inputs) {
    if (signature_->FindInput(std::string(input.key)) >= 0) continue;
    hints = absl::StrCat("; unknown ", Quoted(input.key), NearestHint(input.key, Keys(taken)));
    break;  // one hint: the lists show the rest
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ModelAndSignature(), " takes inputs ", TakenInputs(taken), ", but ",
                   QuotedNames(SentKeys(sent_)), " were sent", hints));
}

absl::Status PredictCall::ReadInput(const SentInput& input, const SignatureTensor& taken,
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

absl::Status PredictCall::ReadInputs(InferRequest* request) {
  const auto& taken = signature_->def().inputs;
  absl::InlinedVector<const SentInput*, 4> sent(taken.size(), nullptr);
  for (const SentInput& input : sent_.inputs) {
    const int index = signature_->FindInput(std::string(input.key));
    if (index < 0) return WrongInputs();
    sent[static_cast<size_t>(index)] = &input;
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    if (sent[i] == nullptr && !taken[i].optional) return WrongInputs();
  }
  request->inputs.resize(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    if (sent[i] == nullptr) continue;
    FLOE_RETURN_IF_ERROR(ReadInput(*sent[i], taken[i], &request->inputs[i]));
  }
  return absl::OkStatus();
}

absl::Status PredictCall::Start(const CallInfo& call, bool content_replies) {
  FLOE_RETURN_IF_ERROR(ReadPredictRequest(message_.bytes, &sent_));
  FLOE_ASSIGN_OR_RETURN(const ServedHandle served, FindModel());
  encoding_ = content_replies ? ReplyEncoding::kContent : served->reply_encoding();
  FLOE_RETURN_IF_ERROR(ChooseEncoding(call));
  FLOE_RETURN_IF_ERROR(ChooseOutputs());
  auto request = std::make_unique<InferRequest>();
  FLOE_RETURN_IF_ERROR(ReadInputs(request.get()));
  request->model = model_;
  request->signature = signature_;
  request->owner = shared_from_this();
  request->deadline = call.deadline;
  request->cancel = call.cancel;
  request->done = [self = shared_from_this()](const absl::Status& status,
                                              absl::Span<const TensorView> outputs) {
    self->Answer(status, outputs);
  };
  served->Submit(std::move(request));
  return absl::OkStatus();
}

absl::StatusOr<std::string> PredictCall::Encode(absl::Span<const TensorView> outputs) const {
  const SignatureDef& def = signature_->def();
  if (outputs.size() != def.outputs.size()) {
    return absl::InternalError(absl::StrCat(ModelAndSignature(), " gave ", outputs.size(),
                                            " outputs instead of ", def.outputs.size()));
  }
  absl::InlinedVector<ReplyOutput, 4> chosen;
  for (const int index : outputs_) {
    chosen.push_back(
        {def.outputs[static_cast<size_t>(index)].key, outputs[static_cast<size_t>(index)]});
  }
  const ModelInfo& info = model_->info();
  return EncodePredictReply({info.name, info.version, def.name}, chosen, encoding_);
}

void PredictCall::Answer(const absl::Status& status, absl::Span<const TensorView> outputs) {
  if (!status.ok()) return responder_->Finish(status);
  absl::StatusOr<std::string> reply = Encode(outputs);
  if (reply.ok()) responder_->Write(*std::move(reply));
  responder_->Finish(reply.status());
}

}  // namespace

UnaryMethod PredictMethod(const ApiContext& context) {
  return [context](const CallInfo& call, Message message, std::shared_ptr<Responder> responder) {
    const auto predict = std::make_shared<PredictCall>(context, std::move(message), responder);
    const absl::Status status = predict->Start(call, context.content_replies);
    if (!status.ok()) responder->Finish(status);
  };
}

}  // namespace floe::server
