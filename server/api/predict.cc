#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/recycled.h"
#include "base/status.h"
#include "server/api/methods.h"
#include "server/api/names.h"
#include "server/api/predict_reply.h"
#include "server/api/sent_request.h"

namespace floe::server {
namespace {

static_assert(kPriorities <= 9, "priorities are one digit");
constexpr char kPriorityKey[] = "floe-priority";  // request metadata: "1" to "9"
constexpr char kReplyKey[] = "floe-reply";        // request metadata: "content" or "typed"

// 1 is served first, 9 last, without one 5.
absl::StatusOr<int> PriorityOf(const CallInfo& call) {
  const std::string_view* const wish = call.FindMetadata(kPriorityKey);
  if (wish == nullptr) return kDefaultPriority;
  if (wish->size() == 1 && (*wish)[0] >= '1' && (*wish)[0] <= '0' + kPriorities)
    return (*wish)[0] - '0';
  return absl::InvalidArgumentError(absl::StrCat("metadata ", kPriorityKey, " is ", Quoted(*wish),
                                                 "; use 1 (first) to ", kPriorities, " (last)"));
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
        request_(context.max_input_bytes) {}

  // OK: the answer comes from the model. Otherwise the caller answers.
  absl::Status Start(const CallInfo& call, bool content_replies);

 private:
  absl::StatusOr<ServedHandle> FindModel();
  absl::Status ChooseEncoding(const CallInfo& call);
  absl::Status Write(absl::Span<const TensorView> outputs);
  absl::Status Encode(absl::Span<const TensorView> outputs, std::string* reply) const;

  const ModelRegistry& registry_;
  const Message message_;
  const std::shared_ptr<Responder> responder_;
  SentRequest request_;
  SentRequest::Outputs outputs_;
  ReplyEncoding encoding_ = ReplyEncoding::kTyped;
  absl::Status answer_;
};

absl::StatusOr<ServedHandle> PredictCall::FindModel() {
  const SentPredict& sent = request_.sent();
  FLOE_RETURN_IF_ERROR(CheckModelName(registry_, sent.model));
  FLOE_ASSIGN_OR_RETURN(ServedHandle served,
                        registry_.Acquire(sent.model, {sent.version, sent.version_label}));
  FLOE_RETURN_IF_ERROR(request_.ChooseSignature(served->model()));
  return served;
}

absl::Status PredictCall::ChooseEncoding(const CallInfo& call) {
  const std::string_view* const wish = call.FindMetadata(kReplyKey);
  if (wish == nullptr) return absl::OkStatus();
  if (*wish != "content" && *wish != "typed") {
    return absl::InvalidArgumentError(
        absl::StrCat("metadata ", kReplyKey, " is ", Quoted(*wish), "; use 'content' or 'typed'"));
  }
  encoding_ = *wish == "content" ? ReplyEncoding::kContent : ReplyEncoding::kTyped;
  return absl::OkStatus();
}

absl::Status PredictCall::Start(const CallInfo& call, bool content_replies) {
  FLOE_RETURN_IF_ERROR(request_.Read(message_.bytes));
  FLOE_ASSIGN_OR_RETURN(const ServedHandle served, FindModel());
  encoding_ = content_replies ? ReplyEncoding::kContent : served->reply_encoding();
  FLOE_RETURN_IF_ERROR(ChooseEncoding(call));
  FLOE_RETURN_IF_ERROR(request_.ChooseOutputs(&outputs_));
  auto request = std::make_unique<InferRequest>();
  FLOE_RETURN_IF_ERROR(request_.Fill(request.get()));
  FLOE_ASSIGN_OR_RETURN(request->priority, PriorityOf(call));
  request->caller = call.caller;
  request->owner = shared_from_this();
  request->owner_bytes = message_.bytes.size() + request_.unfolded_bytes();
  request->deadline = call.deadline;
  request->cancel = call.cancel;
  // The request's owner, so it is there.
  request->done = [this](const absl::Status& status, absl::Span<const TensorView> outputs) {
    answer_ = status.ok() ? Write(outputs) : status;
  };
  request->send = [this] { responder_->Finish(answer_); };
  served->Submit(std::move(request));
  return absl::OkStatus();
}

absl::Status PredictCall::Encode(absl::Span<const TensorView> outputs, std::string* reply) const {
  const SignatureDef& def = request_.signature().def();
  if (outputs.size() != def.outputs.size()) {
    return absl::InternalError(absl::StrCat(request_.ModelAndSignature(), " gave ", outputs.size(),
                                            " outputs instead of ", def.outputs.size()));
  }
  absl::InlinedVector<ReplyOutput, kUsualTensors> chosen;
  for (const int index : outputs_) {
    chosen.push_back(
        {def.outputs[static_cast<size_t>(index)].key, outputs[static_cast<size_t>(index)]});
  }
  const ModelInfo& info = request_.model()->info();
  return EncodePredictReply({info.name, info.version, def.name}, chosen, encoding_, reply);
}

absl::Status PredictCall::Write(absl::Span<const TensorView> outputs) {
  thread_local std::string reply;  // a small one is copied, and its memory serves again
  FLOE_RETURN_IF_ERROR(Encode(outputs, &reply));
  responder_->Write(std::move(reply));
  return absl::OkStatus();
}

}  // namespace

UnaryMethod PredictMethod(const ApiContext& context) {
  return [context](const CallInfo& call, Message message,
                   const std::shared_ptr<Responder>& responder) {
    const auto predict = std::allocate_shared<PredictCall>(RecyclingAllocator<PredictCall>(),
                                                           context, std::move(message), responder);
    const absl::Status status = predict->Start(call, context.content_replies);
    if (!status.ok()) responder->Finish(status);
  };
}

}  // namespace floe::server
