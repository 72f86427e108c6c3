// Unary calls: each is a reactor whose head opens the method. Its message goes there, and the reply
// comes back.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/budget.h"
#include "base/status.h"
#include "server/transport/call_text.h"
#include "server/transport/grpcpp/calls.h"

namespace floe::server {
namespace {

// A unary call, whose request has arrived: at most one message out.
// Threading: reactions on gRPC's threads, Write and Finish on any one thread at a time.
class UnaryCall final : public grpc::ServerUnaryReactor,
                        public Responder,
                        public DeferredReply,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  // Calls `method`, which may answer before this returns. `gate` was entered, and outlives the
  // call. `context`, `request` and `reply` are gRPC's, of this call.
  static grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context,
                                         const std::string& path, const Method& method,
                                         CallGate* gate, const CallRules& rules,
                                         grpc::ByteBuffer* request, grpc::ByteBuffer* reply);
  UnaryCall(grpc::CallbackServerContext* context, std::string_view peer, CallGate* gate,
            ReplySender* sender, grpc::ByteBuffer* reply)
      : context_(*context),
        gate_(*gate),
        sender_(*sender),
        reply_(*reply),
        counted_(gate->replies(), ReplyCount::SlotOf(PeerOf(peer).port)) {}

  void Write(std::string&& message) override;
  void Finish(const absl::Status& status, const Trailers& trailers) override;
  void Defer() override { deferred_ = true; }

 private:
  absl::Status Begin(CallBook* book, const MessageLimits& limits, grpc::ByteBuffer* request,
                     std::string_view peer);
  void Send() override;
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override;
  // OnDone does not block, so gRPC need not move it to another thread.
  bool InternalInlineable() override { return true; }

  grpc::CallbackServerContext& context_;  // gone after OnDone, as is the reply
  CallGate& gate_;
  ReplySender& sender_;
  grpc::ByteBuffer& reply_;
  CountedReply counted_;
  std::shared_ptr<UnaryCall> self_;
  CancelToken cancel_;
  CallSeat seat_;
  Received message_;
  bool has_reply_ = false, deferred_ = false;
  absl::Status end_;  // why the method's reply cannot be sent, then what Finish said
  std::atomic<bool> finished_{false};
};

absl::Status UnaryCall::Begin(CallBook* book, const MessageLimits& limits,
                              grpc::ByteBuffer* request, std::string_view peer) {
  if (!request->Valid()) return NoMessageError();
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
  head.roles = rules.roles;
  const auto call = std::make_shared<UnaryCall>(context, head.peer, gate, rules.sender, reply);
  call->self_ = call;
  // gRPC swallows what a reaction throws, and the call would never end.
  const absl::Status status = CatchOutOfMemory([&]() -> absl::Status {
    // Message, token and responder are all parts of this object: one count, no allocation.
    head.cancel = std::shared_ptr<CancelToken>(call, &call->cancel_);
    FLOE_ASSIGN_OR_RETURN(const std::shared_ptr<CallHandler> opened, method.Open(head, call));
    MessageLimits limits = rules.messages;
    if (method.info().max_bytes > 0)
      limits.max_bytes = std::min(limits.max_bytes, method.info().max_bytes);
    const absl::Status begun = call->Begin(rules.book, limits, request, head.peer);
    if (!begun.ok()) return opened->OnRefused(begun);
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
  end_ = seat_.AddReply(static_cast<int64_t>(message.size()));
  if (!end_.ok()) return std::string().swap(message);
  reply_ = Pack(std::move(message));
  has_reply_ = true;
}

void UnaryCall::Finish(const absl::Status& said, const Trailers& trailers) {
  if (finished_.exchange(true)) return;
  if (!said.ok()) end_ = said;
  AddTrailers(end_, trailers, &context_);
  counted_.Begin();
  // The call lives until its end is sent.
  if (deferred_ && sender_.Post(this)) return;
  Send();
}

// Afterwards this may be gone.
void UnaryCall::Send() {
  if (end_.ok() && !has_reply_) {
    grpc::ServerUnaryReactor::Finish({grpc::StatusCode::INTERNAL, "the method gave no reply"});
  } else {
    grpc::ServerUnaryReactor::Finish(ToGrpc(end_));  // which sends the reply when that is OK
  }
}

void UnaryCall::OnDone() {
  const std::shared_ptr<UnaryCall> self = std::move(self_);  // may be the last reference
  counted_.End();  // a responder that somebody keeps keeps `counted_` too
  seat_.Leave();
  gate_.Leave();
}

class UnaryService final : public grpc::Service {
 public:
  UnaryService(const MethodTable& methods, CallGate* gate, const CallRules& rules) {
    int index = 0;
    for (const auto& [path, method] : methods.methods()) {
      if (method.info().kind != MethodKind::kUnary) continue;
      AddMethod(new grpc::internal::RpcServiceMethod(
          path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
      MarkMethodRawCallback(
          index++, new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                       [gate, rules, &path = path, &method = method](
                           grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                           grpc::ByteBuffer* reply) -> grpc::ServerUnaryReactor* {
                         if (!gate->Enter()) return Refuse(context);
                         // gRPC's handler does not read it again.
                         auto* const own = const_cast<grpc::ByteBuffer*>(request);
                         return UnaryCall::Start(context, path, method, gate, rules, own, reply);
                       }));
    }
  }

 private:
  static grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(ShuttingDownError()));
    return reactor;
  }
};

}  // namespace

std::unique_ptr<grpc::Service> MakeUnaryService(const MethodTable& methods, CallGate* gate,
                                                const CallRules& rules) {
  return std::make_unique<UnaryService>(methods, gate, rules);
}

}  // namespace floe::server
