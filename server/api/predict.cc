// PredictionService/Predict: finds the model, makes the Request, and has the reply encoded.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "runtime/evaluate.h"
#include "server/api/methods.h"
#include "server/registry/task_thread_pool.h"
#include "server/request/checked_request.h"
#include "server/request/encode_predict.h"
#include "server/request/names.h"

namespace floe::server {
namespace {

static_assert(kPriorities <= 9, "priorities are one digit");
constexpr char kPriorityKey[] = "floe-priority";  // request metadata: "1" to "3"
constexpr char kReplyKey[] = "floe-reply";        // request metadata: "content" or "typed"

// 1 is served first, 3 last, without one 2.
absl::StatusOr<int> PriorityOf(const CallHead& call) {
  const std::string* const wish = call.FindMetadata(kPriorityKey);
  if (wish == nullptr) return kDefaultPriority;
  if (wish->size() == 1 && (*wish)[0] >= '1' && (*wish)[0] <= '0' + kPriorities)
    return (*wish)[0] - '0';
  return absl::InvalidArgumentError(absl::StrCat("metadata ", kPriorityKey, " is ", Quoted(*wish),
                                                 "; use 1 (first) to ", kPriorities, " (last)"));
}

absl::StatusOr<std::optional<ReplyEncoding>> WishedEncoding(const CallHead& call) {
  const std::string* const wish = call.FindMetadata(kReplyKey);
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

// Lines of the log that do not become a flood.
class LineLimit {
 public:
  // Whether a line may be logged now: some are each second.
  bool Take() const {
    const int64_t second = Clock::Steady().Now().time_since_epoch() / std::chrono::seconds(1);
    if (second_.exchange(second) != second) lines_.store(0);
    return lines_.fetch_add(1) < kPerSecond;
  }

 private:
  static constexpr int kPerSecond = 10;
  mutable std::atomic<int64_t> second_{0};
  mutable std::atomic<int> lines_{0};
};

// What all calls use.
struct PredictShared {
  explicit PredictShared(const ApiContext& api)
      : context(api),
        decoders(std::make_unique<TaskThreadPool>(kDecoders, ThreadTraits{"decode", 0, {}})),
        started(decoders->Start()) {}

  const ApiContext context;
  const std::unique_ptr<TaskThreadPool> decoders;
  const absl::Status started;
  const LineLimit slow_lines;
};

// "5f2c81aa-42": tells requests apart in errors and the log where callers sent no x-request-id.
std::string NewRequestId() {
  static const uint32_t process = std::random_device()();
  static std::atomic<uint64_t> count{0};
  return absl::StrCat(absl::Hex(process, absl::kZeroPad8), "-", ++count);
}

// One Predict from its head to its answer. Kept alive by the queued request, whose inputs are
// views into its message. It holds the model but not the ServedModel: a worker may be the last to
// drop it, and must not then stop its own queue.
class PredictCall : public CallHandler, public std::enable_shared_from_this<PredictCall> {
 public:
  // `shared` outlives the calls.
  PredictCall(const PredictShared& shared, std::shared_ptr<Responder> responder)
      : shared_(shared),
        responder_(std::move(responder)),
        request_(shared.context.max_input_bytes, shared.context.memory) {}

  absl::Status TakeHead(const CallHead& head);
  void OnMessage(Message message) override;

 private:
  // Decodes the message and hands the request to its model.
  void Submit();
  absl::Status TrySubmit();
  absl::StatusOr<ServedHandle> FindModel();
  absl::Status FillAndSubmit(ServedModel* served);
  absl::Status Write(Outputs outputs);
  int64_t BytesOf(Outputs outputs) const;
  absl::Status Encode(Outputs outputs, std::string* reply) const;
  void Finish(const absl::Status& status);
  void LogIfSlow(const Timings& timings);

  const PredictShared& shared_;
  Message message_;
  const std::shared_ptr<Responder> responder_;
  CheckedRequest request_;
  CheckedRequest::OutputIndices outputs_;
  std::optional<ReplyEncoding> wished_;
  ReplyEncoding encoding_ = ReplyEncoding::kTyped;
  TimePoint arrived_ = TimePoint::min(), deadline_ = TimePoint::max();
  std::shared_ptr<CancelToken> cancel_;
  std::string request_id_;  // "": not needed yet
  uint64_t principal_ = 0;
  int priority_ = kDefaultPriority;
  absl::Status answer_;
};

absl::StatusOr<ServedHandle> PredictCall::FindModel() {
  const ParsedRequest& parsed = request_.parsed();
  const ModelRegistry& registry = shared_.context.registry;
  FLOE_RETURN_IF_ERROR(CheckModelName(registry, parsed.model));
  return registry.Acquire(parsed.model, {parsed.version, parsed.version_label});
}

absl::Status PredictCall::TakeHead(const CallHead& head) {
  FLOE_ASSIGN_OR_RETURN(wished_, WishedEncoding(head));
  FLOE_ASSIGN_OR_RETURN(priority_, PriorityOf(head));
  arrived_ = head.arrived;
  deadline_ = head.deadline;
  cancel_ = head.cancel;
  principal_ = head.principal;
  request_id_ = head.request_id;
  return absl::OkStatus();
}

void PredictCall::OnMessage(Message message) {
  message_ = std::move(message);
  if (message_.bytes.size() <= kSmallMessage) return Submit();
  if (!shared_.started.ok()) return Finish(shared_.started);
  shared_.decoders->Post([self = shared_from_this()] { self->Submit(); });
}

absl::Status PredictCall::TrySubmit() {
  FLOE_RETURN_IF_ERROR(request_.Decode(message_.bytes));
  FLOE_ASSIGN_OR_RETURN(const ServedHandle served, FindModel());
  absl::Status submitted = FillAndSubmit(served.get());
  if (!submitted.ok()) served->CountRefused(submitted.code());
  return submitted;
}

absl::Status PredictCall::FillAndSubmit(ServedModel* served) {
  FLOE_RETURN_IF_ERROR(request_.ChooseSignature(served->model()));
  encoding_ = wished_.value_or(shared_.context.content_replies ? ReplyEncoding::kContent
                                                               : served->reply_encoding());
  FLOE_RETURN_IF_ERROR(request_.ChooseOutputs(&outputs_));
  auto request = std::make_unique<Request>();
  FLOE_RETURN_IF_ERROR(request_.Fill(request.get()));
  request->priority = priority_;
  request->principal = principal_;
  request->owner = shared_from_this();
  request->owner_bytes = message_.bytes.size() + request_.decoded_bytes();
  request->deadline = deadline_;
  if (arrived_ != TimePoint::min()) request->arrived = arrived_;
  request->cancel = std::move(cancel_);
  // The request's owner, so it is there.
  request->complete = [this](const absl::StatusOr<Outputs>& outputs, const Timings& timings) {
    answer_ = outputs.ok() ? Write(*outputs) : outputs.status();
    LogIfSlow(timings);
  };
  request->send = [this] { Finish(answer_); };
  served->Submit(std::move(request));
  return absl::OkStatus();
}

void PredictCall::Submit() {
  const absl::Status status = CatchOutOfMemory([&] { return TrySubmit(); });
  if (!status.ok()) Finish(status);
}

// An error names the request, for those who look for it in the log.
void PredictCall::Finish(const absl::Status& status) {
  if (status.ok()) return responder_->Finish(status);
  absl::Status named = status;
  const absl::Status made = CatchOutOfMemory([&] {
    if (request_id_.empty()) request_id_ = NewRequestId();
    named = absl::Status(status.code(),
                         absl::StrCat(status.message(), " [request ", Quoted(request_id_), "]"));
    status.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
    return absl::OkStatus();
  });
  responder_->Finish(made.ok() ? named : status,
                     made.ok() ? Trailers{{kRequestIdKey, request_id_}} : Trailers());
}

void PredictCall::LogIfSlow(const Timings& timings) {
  if (arrived_ == TimePoint::min()) return;
  const Duration took = Clock::Steady().Now() - arrived_;
  if (took < shared_.context.slow_request) return;
  if (!shared_.slow_lines.Take()) return;
  if (request_id_.empty()) request_id_ = NewRequestId();
  const auto millis = [](Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  spdlog::warn(
      "slow request {}: {}, {:.1f} ms: waited {:.1f} ms, ran {:.1f} ms in a batch of {} rows",
      Quoted(request_id_), request_.ModelAndSignature(), millis(took), millis(timings.queue),
      millis(timings.run), timings.batch_rows);
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
    if (shared_.context.memory != nullptr) {
      FLOE_ASSIGN_OR_RETURN(writing, shared_.context.memory->Take(BytesOf(outputs)));
    }
    FLOE_RETURN_IF_ERROR(Encode(outputs, &reply));
  }
  responder_->Write(std::move(reply));
  return absl::OkStatus();
}

}  // namespace

Method PredictMethod(const ApiContext& context) {
  const auto shared = std::make_shared<const PredictShared>(context);
  return {{MethodKind::kUnary, MethodRole::kInference},
          [shared](const CallHead& head, std::shared_ptr<Responder> responder)
              -> absl::StatusOr<std::shared_ptr<CallHandler>> {
            auto call = std::make_shared<PredictCall>(*shared, std::move(responder));
            FLOE_RETURN_IF_ERROR(call->TakeHead(head));
            return call;
          }};
}

}  // namespace floe::server
