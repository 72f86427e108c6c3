#include <utility>

#include "base/recycled.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {

grpc::ServerGenericBidiReactor* UnaryCall::Start(grpc::GenericCallbackServerContext* context,
                                                 const UnaryMethod& method, CallGate* gate,
                                                 int64_t max_bytes) {
  auto call = std::allocate_shared<UnaryCall>(RecyclingAllocator<UnaryCall>(), context, method,
                                              gate, max_bytes);
  UnaryCall* const reactor = call.get();
  reactor->self_ = std::move(call);
  reactor->StartRead(&reactor->received_);
  return reactor;
}

void UnaryCall::OnReadDone(bool ok) {
  if (!ok) {
    return Finish(context_.IsCancelled()
                      ? absl::CancelledError("the caller left before its request was complete")
                      : absl::InvalidArgumentError("the call ended without a request message"));
  }
  const absl::Status status = TakeSlice(&received_, max_bytes_, &message_);
  if (!status.ok()) return Finish(status);
  // Message, token and responder are all parts of this object: one count, no allocation.
  const std::shared_ptr<UnaryCall> self = shared_from_this();
  CallInfo info = MakeCallInfo(context_);
  info.cancel = std::shared_ptr<CancelToken>(self, &cancel_);
  method_(info, Message{BytesOf(message_), self}, self);
}

void UnaryCall::Write(std::string&& message) {
  if (finished_.load(std::memory_order_relaxed)) return std::string().swap(message);
  reply_ = Pack(std::move(message));
  has_reply_ = true;
}

void UnaryCall::Finish(const absl::Status& status) {
  if (finished_.exchange(true)) return;
  if (status.ok() && has_reply_) {
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  } else if (status.ok()) {
    grpc::ServerGenericBidiReactor::Finish(
        {grpc::StatusCode::INTERNAL, "the method gave no reply"});
  } else {
    grpc::ServerGenericBidiReactor::Finish(ToGrpc(status));
  }
}

void UnaryCall::OnDone() {
  const std::shared_ptr<UnaryCall> self = std::move(self_);  // may be the last reference
  gate_.Leave();
}

}  // namespace floe::server
