// The calls in progress: one reactor each, which is its own Responder.
//
// Lifetime: a reactor owns itself (`self_`) until gRPC's OnDone, which comes after Finish and after
// every other reaction. Responders that methods keep longer only keep its memory; what they say
// then is ignored.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "server/api/rpc.h"
#include "server/transport/call_book.h"
#include "server/transport/grpcpp/reply_count.h"
#include "server/transport/grpcpp/wire.h"

namespace floe::server {

// How many unary calls are in progress, and whether new ones are still taken.
// Threading: any thread.
class CallGate {
 public:
  explicit CallGate(ReplyCount* replies) : replies_(replies) {}
  ReplyCount* replies() const { return replies_; }
  // False once closed; otherwise Leave follows.
  bool Enter() {
    calls_.fetch_add(kOneEntered + 1);
    if (!closed_.load()) return true;
    Leave();
    return false;
  }
  void Leave() {
    if (Active(calls_.fetch_sub(1)) != 1 || !closed_.load()) return;
    MutexLock lock(mutex_);
    empty_.NotifyAll();
  }
  // How many have entered, or tried to; starts anew after 2^32.
  int64_t entered() const { return static_cast<int64_t>(calls_.load() / kOneEntered); }
  // Admits no more and waits for those inside, at most until `deadline`.
  void CloseAndWait(TimePoint deadline) {
    closed_.store(true);
    MutexLock lock(mutex_);
    while (Active(calls_.load()) != 0 && empty_.WaitUntil(mutex_, deadline)) {
    }
  }

 private:
  // Both counts in one word: those inside in its lower half.
  static constexpr uint64_t kOneEntered = uint64_t{1} << 32;
  static uint64_t Active(uint64_t calls) { return calls % kOneEntered; }

  ReplyCount* const replies_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> closed_{false};
  Mutex mutex_;  // of the condition alone
  CondVar empty_;
};

// What every call is held to. They outlive the calls.
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
  // Calls `method`, which may answer before this returns. `gate` was entered; it outlives the call,
  // as what the rules name does.
  // `context`, `request` and `reply` are gRPC's, of this call.
  static grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context,
                                         const std::string& path, const UnaryMethod& method,
                                         CallGate* gate, const CallRules& rules,
                                         grpc::ByteBuffer* request, grpc::ByteBuffer* reply);
  UnaryCall(grpc::CallbackServerContext* context, std::string_view peer, CallGate* gate,
            grpc::ByteBuffer* reply)
      : context_(*context),
        gate_(*gate),
        reply_(*reply),
        counted_(gate->replies(), ReplyCount::SlotOf(peer)) {}

  void Write(std::string&& message) override;
  void Finish(const absl::Status& status) override;

 private:
  absl::Status Begin(const CallRules& rules, grpc::ByteBuffer* request, std::string_view peer);
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override;
  // OnDone waits for nothing, so gRPC need not take it to a thread of its own.
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

// The streams in progress, so that shutting down can end them: they would otherwise last as long as
// their callers like. Threading: any thread.
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

// A streaming call. Messages out wait in a queue, since gRPC takes one at a time; no message is
// read while many wait, and a caller who does not read more than may wait is let go. Streams carry
// small messages only. Threading: Write and Finish on any thread.
class StreamCall final : public grpc::ServerGenericBidiReactor,
                         public Responder,
                         public std::enable_shared_from_this<StreamCall> {
 public:
  // `method` and `streams` outlive the call.
  static grpc::ServerGenericBidiReactor* Start(grpc::GenericCallbackServerContext* context,
                                               const StreamMethod& method, OpenStreams* streams,
                                               CallBook* book);
  StreamCall(grpc::GenericCallbackServerContext* context, std::string_view peer,
             OpenStreams* streams)
      : context_(*context),
        streams_(*streams),
        counted_(streams->replies(), ReplyCount::SlotOf(peer)) {}

  void Write(std::string&& message) override;
  void Finish(const absl::Status& status) override;

 private:
  enum class Next : uint8_t { kNothing, kWrite, kFinish };
  // Messages out, before reading pauses, and before the caller is let go.
  static constexpr size_t kMaxWaiting = 16, kMostWaiting = 1024;
  static constexpr size_t kMaxWaitingBytes = size_t{64} << 10, kMostWaitingBytes = size_t{1} << 20;
  static constexpr int64_t kMaxMessageBytes = int64_t{64} << 10;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // What to ask of gRPC now; the caller does it after letting go of the lock.
  Next Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Next next);
  void ReadOn();

  const grpc::GenericCallbackServerContext& context_;  // gone after OnDone
  OpenStreams& streams_;
  CallSeat seat_;
  CountedReply counted_;  // whoever set `writing_` or `finished_`, and the reactions to that
  std::shared_ptr<StreamCall> self_;
  CancelToken cancel_;
  std::unique_ptr<StreamHandler> handler_;
  grpc::ByteBuffer received_;
  grpc::ByteBuffer sending_;  // written by whoever set `writing_`

  Mutex mutex_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_paused_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // set: nothing more is accepted
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;            // gRPC was told
};

}  // namespace floe::server
