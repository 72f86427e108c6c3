// The calls in progress: one reactor each, which is its own Responder.
//
// Lifetime: a reactor owns itself (`self_`) until gRPC's OnDone, which comes after Finish and after
// every other reaction. A responder that a method keeps longer only keeps its memory; its calls are
// ignored.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "server/api/rpc.h"
#include "server/listener/call_book.h"
#include "server/listener/call_gate.h"
#include "server/transport/grpcpp/wire.h"

namespace floe::server {

// The limits of every call. They outlive the calls.
struct CallRules {
  CallBook* book;
  MessageLimits messages;
};

// A unary call, whose request has arrived: at most one message out.
// Threading: reactions on gRPC's threads, Write and Finish on any one thread at a time.
class UnaryCall final : public grpc::ServerUnaryReactor,
                        public Responder,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  // Calls `method`, which may answer before this returns. `gate` was entered. `gate` and the rules'
  // book outlive the call. `context`, `request` and `reply` are gRPC's, of this call.
  static grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context,
                                         const std::string& path, const Method& method,
                                         CallGate* gate, const CallRules& rules,
                                         grpc::ByteBuffer* request, grpc::ByteBuffer* reply);
  UnaryCall(grpc::CallbackServerContext* context, std::string_view peer, CallGate* gate,
            grpc::ByteBuffer* reply)
      : context_(*context),
        gate_(*gate),
        reply_(*reply),
        counted_(gate->replies(), ReplyCount::SlotOf(PeerOf(peer).port)) {}

  void Write(std::string&& message) override;
  void Finish(const absl::Status& status, const Trailers& trailers) override;

 private:
  absl::Status Begin(CallBook* book, const MessageLimits& limits, grpc::ByteBuffer* request,
                     std::string_view peer);
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override;
  // OnDone does not block, so gRPC need not move it to another thread.
  bool InternalInlineable() override { return true; }

  grpc::CallbackServerContext& context_;  // gone after OnDone, as is the reply
  CallGate& gate_;
  grpc::ByteBuffer& reply_;
  CountedReply counted_;
  std::shared_ptr<UnaryCall> self_;
  CancelToken cancel_;
  CallSeat seat_;
  Received message_;
  bool has_reply_ = false;
  absl::Status no_reply_;  // why the method's reply cannot be sent
  std::atomic<bool> finished_{false};
};

// A call to a path nobody serves.
class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnDone() override { delete this; }
};

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
                                               CallBook* book);
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

}  // namespace floe::server
