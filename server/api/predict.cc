#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "runtime/evaluate.h"
#include "server/api/methods.h"
#include "server/registry/task_threads.h"
#include "server/request/checked_request.h"
#include "server/request/encode_predict.h"
#include "server/request/names.h"

namespace floe::server {
namespace {

static_assert(kPriorities <= 9, "priorities are one digit");
constexpr char kPriorityKey[] = "floe-priority";  // request metadata: "1" to "3"
constexpr char kReplyKey[] = "floe-reply";        // request metadata: "content" or "typed"

// 1 is served first, 3 last, without one 2.
absl::StatusOr<int> PriorityOf(const CallInfo& call) {
  const std::string_view* const wish = call.FindMetadata(kPriorityKey);
  if (wish == nullptr) return kDefaultPriority;
  if (wish->size() == 1 && (*wish)[0] >= '1' && (*wish)[0] <= '0' + kPriorities)
    return (*wish)[0] - '0';
  return absl::InvalidArgumentError(absl::StrCat("metadata ", kPriorityKey, " is ", Quoted(*wish),
                                                 "; use 1 (first) to ", kPriorities, " (last)"));
}

absl::StatusOr<std::optional<ReplyEncoding>> WishedEncoding(const CallInfo& call) {
  const std::string_view* const wish = call.FindMetadata(kReplyKey);
  if (wish == nullptr) return std::nullopt;
  if (*wish == "content") return ReplyEncoding::kContent;
  if (*wish == "typed") return ReplyEncoding::kTyped;
  return absl::InvalidArgumentError(
      absl::StrCat("metadata ", kReplyKey, " is ", Quoted(*wish), "; use 'content' or 'typed'"));
}

// Messages up to this size are decoded on the transport's thread.
constexpr size_t kSmallMessage = size_t{1} << 20;
// Threads that decode the others.
constexpr int kDecoders = 2;

// One Predict from its message to its answer. Kept alive by the queued request, whose inputs are
// views into it. It holds the model but not the ServedModel: a worker may be the last to drop it,
// and must not then stop its own queue.
class PredictCall : public std::enable_shared_from_this<PredictCall> {
 public:
  PredictCall(const ApiContext& context, Message message, std::shared_ptr<Responder> responder)
      : registry_(context.registry),
        message_(std::move(message)),
        responder_(std::move(responder)),
        memory_(context.memory),
        request_(context.max_input_bytes, context.memory) {}

  // Takes what the call says besides its message.
  absl::Status TakeMetadata(const CallInfo& call);
  bool is_small() const { return message_.bytes.size() <= kSmallMessage; }
  // Decodes the message and hands the request to its model.
  void Submit(bool content_replies);
  void Refuse(const absl::Status& status) { responder_->Finish(status); }

 private:
  absl::Status TrySubmit(bool content_replies);
  absl::StatusOr<ServedHandle> FindModel();
  absl::Status Write(Outputs outputs);
  int64_t BytesOf(Outputs outputs) const;
  absl::Status Encode(Outputs outputs, std::string* reply) const;

  const ModelRegistry& registry_;
  const Message message_;
  const std::shared_ptr<Responder> responder_;
  const MemoryBudget* const memory_;  // may be null
  CheckedRequest request_;
  CheckedRequest::OutputIndices outputs_;
  std::optional<ReplyEncoding> wished_;
  ReplyEncoding encoding_ = ReplyEncoding::kTyped;
  TimePoint deadline_ = TimePoint::max();
  std::shared_ptr<CancelToken> cancel_;
  uint64_t caller_ = 0;
  int priority_ = kDefaultPriority;
  absl::Status answer_;
};

absl::StatusOr<ServedHandle> PredictCall::FindModel() {
  const ParsedRequest& parsed = request_.parsed();
  FLOE_RETURN_IF_ERROR(CheckModelName(registry_, parsed.model));
  FLOE_ASSIGN_OR_RETURN(ServedHandle served,
                        registry_.Acquire(parsed.model, {parsed.version, parsed.version_label}));
  FLOE_RETURN_IF_ERROR(request_.ChooseSignature(served->model()));
  return served;
}

absl::Status PredictCall::TakeMetadata(const CallInfo& call) {
  FLOE_ASSIGN_OR_RETURN(wished_, WishedEncoding(call));
  FLOE_ASSIGN_OR_RETURN(priority_, PriorityOf(call));
  deadline_ = call.deadline;
  cancel_ = call.cancel;
  caller_ = call.caller;
  return absl::OkStatus();
}

absl::Status PredictCall::TrySubmit(bool content_replies) {
  FLOE_RETURN_IF_ERROR(request_.Decode(message_.bytes));
  FLOE_ASSIGN_OR_RETURN(const ServedHandle served, FindModel());
  encoding_ =
      wished_.value_or(content_replies ? ReplyEncoding::kContent : served->reply_encoding());
  FLOE_RETURN_IF_ERROR(request_.ChooseOutputs(&outputs_));
  auto request = std::make_unique<Request>();
  FLOE_RETURN_IF_ERROR(request_.Fill(request.get()));
  request->priority = priority_;
  request->principal = caller_;
  request->owner = shared_from_this();
  request->owner_bytes = message_.bytes.size() + request_.decoded_bytes();
  request->deadline = deadline_;
  request->cancel = std::move(cancel_);
  // The request's owner, so it is there.
  request->complete = [this](const absl::StatusOr<Outputs>& outputs, const Timings&) {
    answer_ = outputs.ok() ? Write(*outputs) : outputs.status();
  };
  request->send = [this] { responder_->Finish(answer_); };
  served->Submit(std::move(request));
  return absl::OkStatus();
}

void PredictCall::Submit(bool content_replies) {
  const absl::Status status = CatchOutOfMemory([&] { return TrySubmit(content_replies); });
  if (!status.ok()) Refuse(status);
}

absl::Status PredictCall::Encode(Outputs outputs, std::string* reply) const {
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

// About what the reply will have.
int64_t PredictCall::BytesOf(Outputs outputs) const {
  int64_t bytes = 0;
  for (const int index : outputs_)
    if (static_cast<size_t>(index) < outputs.size())
      bytes += HeldMemory(outputs[static_cast<size_t>(index)]);
  return bytes;
}

absl::Status PredictCall::Write(Outputs outputs) {
  thread_local std::string reply;  // a small one is copied, and its memory serves again
  {
    // Until the transport has it, and pays for it.
    MemoryShare writing;
    if (memory_ != nullptr) {
      FLOE_ASSIGN_OR_RETURN(writing, memory_->Take(BytesOf(outputs)));
    }
    FLOE_RETURN_IF_ERROR(Encode(outputs, &reply));
  }
  responder_->Write(std::move(reply));
  return absl::OkStatus();
}

}  // namespace

UnaryMethod PredictMethod(const ApiContext& context) {
  const auto decoders = std::make_shared<TaskThreads>(kDecoders, ThreadTraits{"decode", 0, {}});
  const absl::Status started = decoders->Start();
  return [context, decoders, started](const CallInfo& call, Message message,
                                      const std::shared_ptr<Responder>& responder) {
    const auto predict = std::make_shared<PredictCall>(context, std::move(message), responder);
    if (absl::Status taken = predict->TakeMetadata(call); !taken.ok())
      return predict->Refuse(taken);
    if (predict->is_small()) return predict->Submit(context.content_replies);
    if (!started.ok()) return predict->Refuse(started);
    decoders->Post([predict, content = context.content_replies] { predict->Submit(content); });
  };
}

}  // namespace floe::server
