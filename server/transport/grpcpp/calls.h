// The services by which gRPC calls the methods. Each call in progress is a reactor, and its own
// Responder. It owns itself until gRPC's OnDone, which comes after Finish and every other reaction.
// A responder that a method keeps longer only keeps its memory; its calls are ignored.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <memory>
#include <set>

#include "base/mutex.h"
#include "server/api/rpc.h"
#include "server/listener/call_book.h"
#include "server/listener/call_gate.h"
#include "server/transport/grpcpp/reply_sender.h"
#include "server/transport/grpcpp/wire.h"

namespace floe::server {

// What holds for every call of a server. Book and sender outlive the calls.
struct CallRules {
  CallBook* book;
  ReplySender* sender;
  MessageLimits messages;
  ListenerRoles roles;  // of the listeners that they come by
};

// The unary methods, each with its path, as bytes. All outlive it. gRPC reads the request of such a
// method together with the call's head. A generic method must ask for the request, which costs two
// more turns of gRPC's queue: a quarter of the time of a small call.
std::unique_ptr<grpc::Service> MakeUnaryService(const MethodTable& methods, CallGate* gate,
                                                const CallRules& rules);

class StreamCall;

// The streams in progress. Shutdown ends them, because their callers may never do so.
// Threading: any thread.
class OpenStreams {
 public:
  explicit OpenStreams(ReplyCount* replies) : replies_(replies) {}
  ReplyCount* replies() const { return replies_; }
  // False once closed.
  bool Add(const std::shared_ptr<StreamCall>& call);
  void Remove(StreamCall* call);
  // Ends all with UNAVAILABLE and admits no more.
  void Close();

 private:
  ReplyCount* const replies_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<StreamCall*> calls_ ABSL_GUARDED_BY(mutex_);
};

// Every other path arrives here. All outlive it.
std::unique_ptr<grpc::CallbackGenericService> MakeStreamService(const MethodTable& methods,
                                                                OpenStreams* streams,
                                                                const CallRules& rules);

}  // namespace floe::server
