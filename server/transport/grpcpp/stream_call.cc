// Streaming calls: the queue of messages out, when the next one is read, and how a call ends.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "server/transport/call_text.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {

// A streaming call. Messages out wait in a queue, because gRPC takes one at a time. While many
// wait, no message is read; beyond a bound, the call ends. Streams carry small messages only.
// Threading: Write and Finish on any thread.
class StreamCall final : public grpc::ServerGenericBidiReactor,
                         public Responder,
                         public std::enable_shared_from_this<StreamCall> {
 public:
  // `method` and `streams` outlive the call.
  static grpc::ServerGenericBidiReactor* Start(grpc::GenericCallbackServerContext* context,
                                               const Method& method, OpenStreams* streams,
                                               const CallRules& rules);
  StreamCall(grpc::GenericCallbackServerContext* context, std::string_view peer,
             OpenStreams* streams)
      : context_(*context),
        streams_(*streams),
        counted_(streams->replies(), ReplyCount::SlotOf(PeerOf(peer).port)) {}

  void Write(std::string&& message) override;
  void Finish(const absl::Status& status, const Trailers& trailers) override;
  int64_t Credit() const override;
  void Pause() override;
  void Resume() override;
  // The server stops: the method writes its last messages, and the stream ends.
  void Drain();

 private:
  enum class Next : uint8_t { kNothing, kWrite, kFinish };
  // Waiting messages, before reading pauses, and before the call ends.
  static constexpr size_t kMaxWaiting = 16, kMostWaiting = 1024;
  static constexpr size_t kMaxWaitingBytes = size_t{64} << 10, kMostWaitingBytes = size_t{1} << 20;
  static constexpr int64_t kMaxMessageBytes = int64_t{64} << 10;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // What to ask of gRPC now; the caller does it after it has released the lock.
  Next Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Next next);
  void ReadOn();

  grpc::GenericCallbackServerContext& context_;  // gone after OnDone
  OpenStreams& streams_;
  CallSeat seat_;
  CountedReply counted_;  // whoever set `writing_` or `finished_`, and the reactions to that
  std::shared_ptr<StreamCall> self_;
  CancelToken cancel_;
  std::shared_ptr<CallHandler> handler_;
  grpc::ByteBuffer received_;
  grpc::ByteBuffer sending_;  // written by whoever set `writing_`

  mutable Mutex mutex_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;          // by the method
  bool reading_paused_ ABSL_GUARDED_BY(mutex_) = false;  // no read is under way, for either reason
  Trailers trailers_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // set: nothing more is accepted
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;            // gRPC was told
};

bool OpenStreams::Add(const std::shared_ptr<StreamCall>& call) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  calls_.insert(call.get());
  return true;
}

void OpenStreams::Remove(StreamCall* call) {
  MutexLock lock(mutex_);
  calls_.erase(call);
}

void OpenStreams::Close() {
  std::vector<std::shared_ptr<StreamCall>> calls;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    // A call is removed before it lets go of itself, so those listed are alive.
    for (StreamCall* call : calls_) calls.push_back(call->shared_from_this());
  }
  for (const auto& call : calls) call->Drain();
}

grpc::ServerGenericBidiReactor* StreamCall::Start(grpc::GenericCallbackServerContext* context,
                                                  const Method& method, OpenStreams* streams,
                                                  const CallRules& rules) {
  CallHead head = MakeCallHead(context->method(), *context);
  head.roles = rules.roles;
  auto call = std::make_shared<StreamCall>(context, head.peer, streams);
  StreamCall* const reactor = call.get();
  reactor->self_ = call;
  head.cancel = std::shared_ptr<CancelToken>(call, &reactor->cancel_);
  absl::StatusOr<std::shared_ptr<CallHandler>> opened = method.Open(head, call);
  absl::Status status = opened.status();
  if (status.ok()) reactor->handler_ = *std::move(opened);
  if (status.ok()) status = rules.book->Take(head.peer, kMostWaitingBytes, &reactor->seat_);
  if (!streams->Add(call)) status = ShuttingDownError();
  if (!status.ok()) reactor->Responder::Finish(status);
  reactor->ReadOn();
  return reactor;
}

int64_t StreamCall::Credit() const {
  MutexLock lock(mutex_);
  return waiting_.size() >= kMostWaiting
             ? 0
             : static_cast<int64_t>(kMostWaitingBytes -
                                    std::min(waiting_bytes_, kMostWaitingBytes));
}

void StreamCall::Pause() {
  MutexLock lock(mutex_);
  paused_ = true;
}

void StreamCall::Resume() {
  bool resume;
  {
    MutexLock lock(mutex_);
    paused_ = false;
    resume = reading_paused_ && waiting_.empty();
    if (resume) reading_paused_ = false;  // by this thread, and no other
  }
  if (resume) ReadOn();
}

void StreamCall::Drain() {
  if (const std::shared_ptr<CallHandler> handler = handler_; handler != nullptr) handler->OnDrain();
  Finish(ShuttingDownError(), {});
}

void StreamCall::Write(std::string&& message) {
  Next next;
  {
    MutexLock lock(mutex_);
    if (end_.has_value()) return;
    waiting_bytes_ += message.size();
    waiting_.push_back(std::move(message));
    if (waiting_.size() > kMostWaiting || waiting_bytes_ > kMostWaitingBytes) {
      waiting_.clear();
      waiting_bytes_ = 0;
      end_ = NotReadError();
    }
    next = Decide();
  }
  Do(next);
}

void StreamCall::Finish(const absl::Status& status, const Trailers& trailers) {
  Next next;
  {
    MutexLock lock(mutex_);
    if (end_.has_value()) return;
    end_ = status;
    trailers_ = trailers;
    next = Decide();
  }
  Do(next);
}

StreamCall::Next StreamCall::Decide() {
  if (writing_ || finished_) return Next::kNothing;
  if (!waiting_.empty()) {
    writing_ = true;
    waiting_bytes_ -= waiting_.front().size();
    sending_ = Pack(std::move(waiting_.front()));
    waiting_.pop_front();
    return Next::kWrite;
  }
  if (!end_.has_value()) return Next::kNothing;
  finished_ = true;
  return Next::kFinish;
}

// Outside the lock, because gRPC may run reactions on the thread that asks. `writing_` and
// `finished_` keep others from asking meanwhile; `end_` no longer changes once it is set.
void StreamCall::Do(Next next) {
  if (next == Next::kNothing) return;
  counted_.Begin();
  if (next == Next::kWrite) return StartWrite(&sending_);
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = *end_;
    AddTrailers(status, trailers_, &context_);
  }
  grpc::ServerGenericBidiReactor::Finish(ToGrpc(status));
}

void StreamCall::ReadOn() {
  {
    MutexLock lock(mutex_);
    if (end_.has_value()) return;
    reading_paused_ = paused_ || waiting_.size() > kMaxWaiting || waiting_bytes_ > kMaxWaitingBytes;
    if (reading_paused_) return;
  }
  StartRead(&received_);
}

void StreamCall::OnReadDone(bool ok) {
  if (!ok) {
    if (!context_.IsCancelled() && handler_ != nullptr) handler_->OnHalfClose();
    return;
  }
  // gRPC swallows what a reaction throws, and the call would never end.
  const absl::Status status = CatchOutOfMemory([this]() -> absl::Status {
    const auto message = std::make_shared<Received>();
    FLOE_RETURN_IF_ERROR(TakeMessage(&received_, {kMaxMessageBytes, false}, message.get()));
    handler_->OnMessage(Message{BytesOf(message->slice), message});
    return absl::OkStatus();
  });
  if (!status.ok()) return Finish(status, {});
  ReadOn();
}

void StreamCall::OnWriteDone(bool ok) {
  counted_.End();
  Next next;
  bool resume, sent_all;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) {  // the caller is gone; OnCancel ends the call
      waiting_.clear();
      waiting_bytes_ = 0;
    }
    next = Decide();
    sent_all = ok && waiting_.empty() && !end_.has_value();
    resume = reading_paused_ && !paused_ && waiting_.empty();
    if (resume) reading_paused_ = false;  // by this thread, and no other
  }
  Do(next);
  if (sent_all && handler_ != nullptr) handler_->OnWritable();
  if (resume) ReadOn();
}

void StreamCall::OnCancel() {
  cancel_.Cancel();
  Finish(absl::CancelledError("the caller left"), {});
}

void StreamCall::OnDone() {
  const std::shared_ptr<StreamCall> self = std::move(self_);
  counted_.End();
  seat_.Leave();
  streams_.Remove(this);
  if (handler_ != nullptr) handler_->OnDone();
  handler_.reset();
}

namespace {

// A call to a path nobody serves.
class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnDone() override { delete this; }
};

class StreamService final : public grpc::CallbackGenericService {
 public:
  StreamService(const MethodTable& methods, OpenStreams* streams, const CallRules& rules)
      : methods_(methods), streams_(*streams), rules_(rules) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    if (const Method* method = methods_.Find(path)) {
      return StreamCall::Start(context, *method, &streams_, rules_);
    }
    return new RefusedCall(UnknownMethodError(methods_, path));
  }

 private:
  const MethodTable& methods_;
  OpenStreams& streams_;
  const CallRules rules_;
};

}  // namespace

std::unique_ptr<grpc::CallbackGenericService> MakeStreamService(const MethodTable& methods,
                                                                OpenStreams* streams,
                                                                const CallRules& rules) {
  return std::make_unique<StreamService>(methods, streams, rules);
}

}  // namespace floe::server
