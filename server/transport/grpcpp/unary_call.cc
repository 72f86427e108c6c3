// A unary call: its head opens the method, its message goes there, the reply comes back.
#include <algorithm>
#include <utility>

#include "base/budget.h"
#include "base/status.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {

absl::Status UnaryCall::Begin(CallBook* book, const MessageLimits& limits,
                              grpc::ByteBuffer* request, std::string_view peer) {
  if (!request->Valid())
    return absl::InvalidArgumentError("the call ended without a request message");
  const auto size = static_cast<int64_t>(request->Length());
  FLOE_RETURN_IF_ERROR(book->Take(peer, size, &seat_));
  FLOE_RETURN_IF_ERROR(TakeMessage(request, limits, &message_));
  const auto taken = static_cast<int64_t>(message_.slice.size());
  return taken > size ? seat_.AddRequest(taken - size) : absl::OkStatus();
}

grpc::ServerUnaryReactor* UnaryCall::Start(grpc::CallbackServerContext* context,
                                           const std::string& path, const Method& method,
                                           CallGate* gate, const CallRules& rules,
                                           grpc::ByteBuffer* request, grpc::ByteBuffer* reply) {
  CallHead head = MakeCallHead(path, *context);
  const auto call = std::make_shared<UnaryCall>(context, head.peer, gate, reply);
  call->self_ = call;
  // gRPC swallows what a reaction throws, and the call would never end.
  const absl::Status status = CatchOutOfMemory([&]() -> absl::Status {
    // Message, token and responder are all parts of this object: one count, no allocation.
    head.cancel = std::shared_ptr<CancelToken>(call, &call->cancel_);
    FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<CallHandler> opened, method.open(head, call));
    MessageLimits limits = rules.messages;
    if (method.info.max_bytes > 0)
      limits.max_bytes = std::min(limits.max_bytes, method.info.max_bytes);
    FLOE_RETURN_IF_ERROR(call->Begin(rules.book, limits, request, head.peer));
    opened->OnMessage(Message{BytesOf(call->message_.slice), call});
    return absl::OkStatus();
  });
  if (!status.ok()) {
    request->Clear();
    call->Responder::Finish(status);
  }
  return call.get();  // which owns itself until OnDone
}

void UnaryCall::Write(std::string&& message) {
  if (finished_.load(std::memory_order_relaxed)) return std::string().swap(message);
  no_reply_ = seat_.AddReply(static_cast<int64_t>(message.size()));
  if (!no_reply_.ok()) return std::string().swap(message);
  reply_ = Pack(std::move(message));
  has_reply_ = true;
}

void UnaryCall::Finish(const absl::Status& said, const Trailers& trailers) {
  if (finished_.exchange(true)) return;
  const absl::Status& status = said.ok() ? no_reply_ : said;
  AddTrailers(status, trailers, &context_);
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
  seat_.Leave();
  gate_.Leave();
}

}  // namespace floe::server
