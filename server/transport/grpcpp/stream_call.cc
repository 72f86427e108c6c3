#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {
namespace {

absl::Status ShuttingDown() { return absl::UnavailableError("the server is shutting down"); }

}  // namespace

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
  for (const auto& call : calls) call->Finish(ShuttingDown());
}

grpc::ServerGenericBidiReactor* StreamCall::Start(grpc::GenericCallbackServerContext* context,
                                                  const StreamMethod& method, OpenStreams* streams,
                                                  CallBook* book) {
  const std::string peer = context->peer();
  auto call = std::make_shared<StreamCall>(context, peer, streams);
  StreamCall* const reactor = call.get();
  reactor->self_ = call;
  CallInfo info = MakeCallInfo(context->method(), peer, *context);
  info.cancel = std::shared_ptr<CancelToken>(call, &reactor->cancel_);
  reactor->handler_ = method(info, call);
  if (absl::Status s = book->Take(peer, kMostWaitingBytes, &reactor->seat_); !s.ok())
    reactor->Finish(s);
  if (!streams->Add(call)) reactor->Finish(ShuttingDown());
  reactor->ReadOn();
  return reactor;
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
      end_ = absl::ResourceExhaustedError("the caller does not read what the stream brings");
    }
    next = Decide();
  }
  Do(next);
}

void StreamCall::Finish(const absl::Status& status) {
  Next next;
  {
    MutexLock lock(mutex_);
    if (end_.has_value()) return;
    end_ = status;
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
  }
  grpc::ServerGenericBidiReactor::Finish(ToGrpc(status));
}

void StreamCall::ReadOn() {
  {
    MutexLock lock(mutex_);
    if (end_.has_value()) return;
    reading_paused_ = waiting_.size() > kMaxWaiting || waiting_bytes_ > kMaxWaitingBytes;
    if (reading_paused_) return;
  }
  StartRead(&received_);
}

void StreamCall::OnReadDone(bool ok) {
  if (!ok) {
    if (!context_.IsCancelled()) handler_->OnHalfClose();
    return;
  }
  // gRPC swallows what a reaction throws, and the call would never end.
  const absl::Status status = CatchOutOfMemory([this]() -> absl::Status {
    const auto message = std::make_shared<Received>();
    FLOE_RETURN_IF_ERROR(TakeMessage(&received_, {kMaxMessageBytes, false}, message.get()));
    handler_->OnMessage(Message{BytesOf(message->slice), message});
    return absl::OkStatus();
  });
  if (!status.ok()) return Finish(status);
  ReadOn();
}

void StreamCall::OnWriteDone(bool ok) {
  counted_.End();
  Next next;
  bool resume;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) {  // the caller is gone; OnCancel ends the call
      waiting_.clear();
      waiting_bytes_ = 0;
    }
    next = Decide();
    resume = reading_paused_ && waiting_.empty();
    if (resume) reading_paused_ = false;  // by this thread, and no other
  }
  Do(next);
  if (resume) ReadOn();
}

void StreamCall::OnCancel() {
  cancel_.Cancel();
  Finish(absl::CancelledError("the caller left"));
}

void StreamCall::OnDone() {
  const std::shared_ptr<StreamCall> self = std::move(self_);
  counted_.End();
  seat_.Leave();
  streams_.Remove(this);
  handler_->OnDone();
  handler_.reset();
}

}  // namespace floe::server
