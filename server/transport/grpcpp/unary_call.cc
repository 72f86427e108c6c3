#include <utility>

#include "base/budget.h"
#include "base/recycled.h"
#include "base/status.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {

grpc::ServerUnaryReactor* UnaryCall::Start(grpc::CallbackServerContext* context,
                                           const std::string& path, const UnaryMethod& method,
                                           CallGate* gate, int64_t max_bytes,
                                           grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
  const std::string peer = context->peer();
  const auto call =
      std::allocate_shared<UnaryCall>(RecyclingAllocator<UnaryCall>(), context, peer, gate, reply);
  call->self_ = call;
  // gRPC swallows what a reaction throws, and the call would never end.
  const absl::Status status = CatchOutOfMemory([&]() -> absl::Status {
    if (!request->Valid()) {
      return absl::InvalidArgumentError("the call ended without a request message");
    }
    FLOE_RETURN_IF_ERROR(TakeSlice(request, max_bytes, &call->message_));
    // Message, token and responder are all parts of this object: one count, no allocation.
    CallInfo info = MakeCallInfo(path, peer, *context);
    info.cancel = std::shared_ptr<CancelToken>(call, &call->cancel_);
    method(info, Message{BytesOf(call->message_), call}, call);
    return absl::OkStatus();
  });
  if (!status.ok()) call->Finish(status);
  return call.get();  // which owns itself until OnDone
}

void UnaryCall::Write(std::string&& message) {
  if (finished_.load(std::memory_order_relaxed)) return std::string().swap(message);
  reply_ = Pack(std::move(message));
  has_reply_ = true;
}

void UnaryCall::Finish(const absl::Status& status) {
  if (finished_.exchange(true)) return;
  if (!status.ok()) AddRetryHint(status, &context_);
  counted_.Begin();
  if (status.ok() && !has_reply_) {
    grpc::ServerUnaryReactor::Finish({grpc::StatusCode::INTERNAL, "the method gave no reply"});
  } else {
    grpc::ServerUnaryReactor::Finish(ToGrpc(status));  // which sends the reply when that is OK
  }
}

void UnaryCall::OnDone() {
  const std::shared_ptr<UnaryCall> self = std::move(self_);  // may be the last reference
  counted_.End();  // a responder that somebody keeps keeps `counted_` too
  gate_.Leave();
}

}  // namespace floe::server
