// An inference from its message to its reply: reads the head of the call, has its codec fill the
// Inference, hands a Request to its model, and sends what comes back. Large messages are decoded on
// threads of their own.
#include "server/api/infer_call.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/task_thread_pool.h"
#include "runtime/evaluate.h"
#include "server/api/followed.h"
#include "server/api/line_limit.h"
#include "server/api/methods.h"
#include "server/api/refusal_log.h"
#include "server/request/request.h"

namespace floe::server {
namespace {

// Messages that take long are decoded on threads beside the transport's, so many of them.
constexpr int kDecodeThreads = 2;

// What clients of gRPC receive at most unless they ask for more.
constexpr size_t kUsualReplyLimit = size_t{4} << 20;

// Lines about slow requests, each second.
constexpr int kSlowLinesPerSecond = 10;

static_assert(kPriorities <= 9, "priorities are one digit");
constexpr char kPriorityKey[] = "floe-priority";  // request metadata: "1" to "3"

absl::StatusOr<int> PriorityOf(const CallHead& call) {
  const std::string* const wish = call.FindMetadata(kPriorityKey);
  if (wish == nullptr) return kDefaultPriority;
  if (wish->size() == 1 && (*wish)[0] >= '1' && (*wish)[0] <= '0' + kPriorities)
    return (*wish)[0] - '0';
  return absl::InvalidArgumentError(absl::StrCat("metadata ", kPriorityKey, " is ", Quoted(*wish),
                                                 "; use 1 (first) to ", kPriorities, " (last)"));
}

// What all calls of a method use.
struct Shared {
  explicit Shared(const ApiContext& api)
      : context(api),
        decoders(std::make_unique<TaskThreadPool>(kDecodeThreads, ThreadTraits{"decode", 0, {}})),
        started(decoders->Start()),
        refusals(api.refusals == nullptr ? own_refusals : *api.refusals) {}

  // Whether no reply of this model has been logged as large.
  bool TakeLargeReply(const std::string& model) const {
    const MutexLock lock(large_mutex);
    return with_large_replies.insert(model).second;
  }

  const ApiContext context;
  const std::unique_ptr<TaskThreadPool> decoders;
  const absl::Status started;  // the decoders
  mutable LineLimit slow_lines{kSlowLinesPerSecond};
  mutable Mutex large_mutex;
  mutable std::set<std::string> with_large_replies ABSL_GUARDED_BY(large_mutex);
  mutable RefusalLog own_refusals;
  RefusalLog& refusals;
};

// One class: the phases of a call, which share its state. Kept alive by its request. What is asked
// has views into the message, and holds the model but not the ServedModel: a worker may be the last
// to drop it, and must not then stop its own queue.
class InferCall : public CallHandler, public std::enable_shared_from_this<InferCall> {
 public:
  // `shared` outlives the calls.
  InferCall(const Shared& shared, std::shared_ptr<Responder> responder)
      : shared_(shared), responder_(std::move(responder)) {}

  using MakeCodec = absl::FunctionRef<absl::Status(CodecPlace* place)>;
  // An error that names the request.
  absl::Status Open(const CallHead& head, MakeCodec make_codec);
  void OnMessage(Message message) override;
  absl::Status OnRefused(const absl::Status& status) override { return Ended(status, nullptr); }

 private:
  // Decodes the message and hands the request to its model.
  void Submit();
  absl::Status TryOpen(const CallHead& head, MakeCodec make_codec);
  absl::Status TrySubmit();
  void Grant(const CallWishes& wishes);
  void Complete(const absl::StatusOr<Outputs>& outputs, const Timings& timings);
  absl::Status Write(Outputs outputs);
  void LogRequest(Outputs outputs, const std::string& reply);
  void Finish(const absl::Status& status);
  // The error with the request's id, after a line in the log.
  absl::Status Refused(const absl::Status& status);
  // Whatever the call's end asks for beside its reply: lines of logs, and what its caller is told.
  // The status that is sent. `trailers` may be null.
  absl::Status Ended(const absl::Status& status, Trailers* trailers);
  void LogAccess(const absl::Status& status);
  void LogIfSlow(const Timings& timings);
  void LogIfLarge(size_t reply_bytes);

  const Shared& shared_;
  const std::shared_ptr<Responder> responder_;
  Message message_;
  Inference asked_;  // const from Submit on
  Request made_;     // until it is submitted
  CodecPlace codec_;
  Caller caller_;
  TimePoint arrived_ = TimePoint::min();
  std::string request_id_;              // "": not needed yet
  std::string_view model_;              // as the message names it
  std::unique_ptr<Followed> followed_;  // null: nobody does
  bool logs_request_ = false;
};

absl::Status InferCall::Open(const CallHead& head, MakeCodec make_codec) {
  request_id_ = head.request_id;
  const absl::Status status = TryOpen(head, make_codec);
  return status.ok() ? status : Ended(status, nullptr);
}

absl::Status InferCall::TryOpen(const CallHead& head, MakeCodec make_codec) {
  FLOE_ASSIGN_OR_RETURN(followed_, FollowCall(head, shared_.context.access_log != nullptr));
  FLOE_RETURN_IF_ERROR(make_codec(&codec_));
  FLOE_ASSIGN_OR_RETURN(made_.priority, PriorityOf(head));
  made_.deadline = head.deadline;
  made_.cancel = head.cancel;
  made_.principal = head.principal;
  caller_ = head.caller;
  asked_.storage = InputStorage(shared_.context.max_input_bytes, shared_.context.memory);
  arrived_ = head.arrived;
  if (arrived_ != TimePoint::min()) made_.arrived = arrived_;
  return absl::OkStatus();
}

void InferCall::OnMessage(Message message) {
  message_ = std::move(message);
  if (followed_ != nullptr) followed_->request_bytes = message_.bytes.size();
  if (!codec_->IsSlow(message_.bytes)) return Submit();
  if (!shared_.started.ok()) return Finish(shared_.started);
  shared_.decoders->Post([self = shared_from_this()] { self->Submit(); });
}

void InferCall::Submit() {
  const absl::Status status = CatchOutOfMemory([&] { return TrySubmit(); });
  if (!status.ok()) Finish(status);
}

absl::Status InferCall::TrySubmit() {
  const ApiContext& context = shared_.context;
  ServedHandle served;
  const auto find = [&](const ModelSpec& spec) -> absl::StatusOr<const ServedModel*> {
    model_ = spec.name;
    if (spec.name.empty()) return CheckModelName(context.registry, spec.name);
    FLOE_RETURN_IF_ERROR(caller_.CheckModel(spec.name));
    FLOE_ASSIGN_OR_RETURN(served, codec_->Acquire(context.registry, spec));
    return served.get();
  };
  absl::Status decoded = codec_->Decode(message_.bytes, find, &asked_);
  if (!decoded.ok()) {
    if (served != nullptr) served->CountRefused(asked_, decoded.code());
    return decoded;
  }
  Grant(codec_->wishes());
  logs_request_ =
      context.request_log != nullptr && RequestLog::Takes(asked_.door, served->log_one_in());
  made_.asked = {shared_from_this(), &asked_};
  made_.complete = [this](const absl::StatusOr<Outputs>& outputs, const Timings& timings) {
    Complete(outputs, timings);
  };
  served->Submit(std::move(made_));
  return absl::OkStatus();
}

void InferCall::Grant(const CallWishes& wishes) {
  if (wishes.priority) made_.priority = *wishes.priority;
  if (wishes.timeout <= Duration::zero()) return;
  const TimePoint since = arrived_ == TimePoint::min() ? Clock::Steady().Now() : arrived_;
  made_.deadline = std::min(made_.deadline, since + wishes.timeout);
}

void InferCall::Complete(const absl::StatusOr<Outputs>& outputs, const Timings& timings) {
  if (followed_ != nullptr) followed_->timings = timings;
  const absl::Status status = outputs.ok() ? Write(*outputs) : outputs.status();
  LogIfSlow(timings);
  if (timings.more_waits) responder_->Defer();
  Finish(status);
}

absl::Status InferCall::Write(Outputs outputs) {
  thread_local std::string reply;  // a small one is copied, and its memory serves again
  {
    // Until the transport has it, and pays for it.
    MemoryShare writing;
    if (shared_.context.memory != nullptr) {
      int64_t bytes = 0;  // about what the reply will have
      for (const int index : asked_.outputs)
        if (static_cast<size_t>(index) < outputs.size())
          bytes += HeldMemory(outputs[static_cast<size_t>(index)]);
      FLOE_ASSIGN_OR_RETURN(writing, shared_.context.memory->Take(bytes));
    }
    FLOE_RETURN_IF_ERROR(codec_->Encode(asked_, outputs, &reply));
  }
  LogIfLarge(reply.size());
  if (followed_ != nullptr) followed_->reply_bytes = reply.size();
  if (logs_request_) LogRequest(outputs, reply);
  responder_->Write(std::move(reply));
  return absl::OkStatus();
}

void InferCall::LogRequest(Outputs outputs, const std::string& reply) {
  const RequestLog& log = *shared_.context.request_log;
  if (RequestLog::HasOwnMessages(asked_.door))
    return log.Add(asked_.door, asked_.model->info().name, message_.bytes, reply);
  // The answer does not depend on it.
  const absl::Status status = CatchOutOfMemory([&] { return log.AddAsPredict(asked_, outputs); });
  if (!status.ok())
    spdlog::warn("{}: no record of a request: {}", ModelAndSignature(asked_),
                 std::string(status.message()));
}

// For those who look for the request in the log.
absl::Status InferCall::Refused(const absl::Status& status) {
  if (request_id_.empty()) request_id_ = NewRequestId();
  // Callers that leave are no news.
  if (!absl::IsCancelled(status)) {
    const std::string line =
        shared_.refusals.Line(model_, request_id_, status, Clock::Steady().Now());
    if (!line.empty()) spdlog::info("{}", line);
  }
  absl::Status named(status.code(),
                     absl::StrCat(status.message(), " [request ", Quoted(request_id_), "]"));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

void InferCall::Finish(const absl::Status& status) {
  if (status.ok() && followed_ == nullptr) return responder_->Finish(status);
  absl::Status named = status;
  Trailers trailers;
  const absl::Status made = CatchOutOfMemory([&] {
    named = Ended(status, &trailers);
    return absl::OkStatus();
  });
  responder_->Finish(made.ok() ? named : status, made.ok() ? trailers : Trailers());
}

absl::Status InferCall::Ended(const absl::Status& status, Trailers* trailers) {
  absl::Status named = status.ok() ? status : Refused(status);
  if (followed_ != nullptr) LogAccess(status);
  if (trailers == nullptr) return named;
  const bool by_caller = followed_ != nullptr && followed_->by_caller;
  if (by_caller && request_id_.empty()) request_id_ = NewRequestId();
  if (by_caller || !status.ok()) trailers->emplace_back(kRequestIdKey, request_id_);
  if (!by_caller) return named;
  AddTraceAndTimes(*followed_, trailers);
  return named;
}

void InferCall::LogAccess(const absl::Status& status) {
  AccessLog* const log = shared_.context.access_log;
  if (log == nullptr || !log->Takes(status)) return;
  if (request_id_.empty()) request_id_ = NewRequestId();
  AccessRecord record;
  record.peer = followed_->peer;
  if (caller_.principal() != nullptr) record.caller = caller_.principal()->name;
  record.method = followed_->path;
  record.model = model_;
  if (asked_.signature != nullptr) {
    record.model = asked_.model->info().name;
    record.version = asked_.model->info().version;
    record.signature = asked_.signature->def().name;
  }
  record.status = status;
  record.request_bytes = static_cast<int64_t>(followed_->request_bytes);
  record.reply_bytes = static_cast<int64_t>(followed_->reply_bytes);
  if (arrived_ != TimePoint::min()) record.took = Clock::Steady().Now() - arrived_;
  record.timings = followed_->timings.value_or(Timings());
  record.request_id = request_id_;
  if (followed_->trace.has_value()) record.trace_id = followed_->trace->trace_id;
  log->Add(record);
}

void InferCall::LogIfSlow(const Timings& timings) {
  if (arrived_ == TimePoint::min()) return;
  const Duration took = Clock::Steady().Now() - arrived_;
  if (took < shared_.context.slow_request || !shared_.slow_lines.Take()) return;
  if (request_id_.empty()) request_id_ = NewRequestId();
  const auto millis = [](Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  spdlog::warn(
      "slow request {}: {}, {:.1f} ms: waited {:.1f} ms, ran {:.1f} ms in a batch of {} rows",
      Quoted(request_id_), ModelAndSignature(asked_), millis(took), millis(timings.queue),
      millis(timings.run), timings.batch_rows);
}

// The error is made by the client, so that only this line can tell an operator of it.
void InferCall::LogIfLarge(size_t reply_bytes) {
  if (reply_bytes <= kUsualReplyLimit || !codec_->HasReplyLimit()) return;
  if (!shared_.TakeLargeReply(asked_.model->info().name)) return;
  spdlog::info(
      "{}: a reply has {:.1f} MiB; gRPC clients refuse replies of more than {} MiB "
      "(RESOURCE_EXHAUSTED) unless their channel has a larger grpc.max_receive_message_length; "
      "logged once for each model",
      ModelAndSignature(asked_), static_cast<double>(reply_bytes) / (1 << 20),
      kUsualReplyLimit >> 20);
}

}  // namespace

OpenInference InferenceDoor(const ApiContext& context) {
  return [shared = std::make_shared<const Shared>(context)](
             const CallHead& head, std::shared_ptr<Responder> responder,
             InferCall::MakeCodec make_codec) -> absl::StatusOr<std::shared_ptr<CallHandler>> {
    auto call = std::make_shared<InferCall>(*shared, std::move(responder));
    FLOE_RETURN_IF_ERROR(call->Open(head, make_codec));
    return call;
  };
}

Method InferMethod(const ApiContext& context, OpenCodec open) {
  return {{.role = MethodRole::kInference, .is_inference = true},
          [door = InferenceDoor(context), open = std::move(open)](
              const CallHead& head, std::shared_ptr<Responder> responder) {
            return door(head, std::move(responder),
                        [&](CodecPlace* place) { return open(head, place); });
          }};
}

}  // namespace floe::server
