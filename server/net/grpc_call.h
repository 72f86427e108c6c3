// GrpcCall: a call in progress over a stream of HTTP/2: its messages in, its messages out, its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/cancel.h"
#include "base/mutex.h"
#include "server/net/grpc_wire.h"
#include "server/net/loop.h"
#include "server/net/net_rules.h"

namespace floe::server {

class H2Session;

// Of a call, until a message is announced.
inline constexpr size_t kCallWindow = size_t{256} << 10;

// What the head of a request says of its call, beside CallHead.
struct GrpcHead {
  const Method* method = nullptr;
  Packing packing = Packing::kNone;  // of its messages
  Packing reply = Packing::kNone;    // of the replies
};

// The session holds it while its stream is open; the handler, through the Responder, until it is
// done. It counts in book and gate until both are over. One class: a call, as its session, its
// handler and other threads see it.
// Threading: Responder on any thread, the rest on the session's loop.
class GrpcCall final : public Responder,
                       public Loop::Task,
                       public std::enable_shared_from_this<GrpcCall> {
 public:
  GrpcCall(H2Session* session, int32_t stream, const GrpcHead& head);
  ~GrpcCall() override { Leave(); }

  // Opens the method. An error refuses the call, which is over then.
  absl::Status Open(CallHead head);

  // The session's. Bytes of the request's body, and its end.
  void OnData(std::string_view bytes);
  void OnHalfClose();
  // Where the next bytes of its message go; empty: not known.
  std::span<char> Room();
  // The stream is gone; `whole`: with everything that was to be sent.
  void OnClosed(bool whole);
  void OnDeadline();
  void OnUnread();
  void Drain();

  // What is to be sent: bytes now, and whether that is all.
  size_t Available() const { return out_bytes_; }
  bool IsEnding() const { return end_.has_value(); }
  void CopyOut(size_t bytes, std::string* out);
  const absl::Status& end() const { return *end_; }
  const Trailers& trailers() const { return trailers_; }
  Packing reply_packing() const { return head_.reply; }

  int32_t stream() const { return stream_; }
  bool is_stream() const { return head_.method->info().kind == MethodKind::kStream; }
  bool is_bulk() const { return head_.method->info().bulk; }
  bool began_reply = false;  // the session's: its headers are sent

  // Responder.
  void Write(std::string&& message) override;
  void Finish(const absl::Status& status, const Trailers& trailers) override;
  int64_t Credit() const override;
  void Pause() override;
  void Resume() override;
  // Task: what other threads wrote reaches the session.
  void Run() override;

 private:
  absl::Status Admit(const std::string& peer);
  struct Out {
    std::string bytes;
    bool packed = false;
  };
  // A message as it arrives: it grows as bytes come, never to what is only claimed.
  struct Arriving {
    std::unique_ptr<char, void (*)(void*)> memory{nullptr, nullptr};
    size_t allocated = 0;  // address space
    size_t before = 0;     // unused bytes, which align the tensor in the message
    size_t size = 0, capacity = 0, whole = 0;
    // Makes room for more, which `seat` pays; `next` comes there. RESOURCE_EXHAUSTED: it cannot.
    absl::Status Grow(CallSeat* seat, std::string_view next);
    void Append(std::string_view part);
    std::string_view bytes() const { return {memory.get() + before, size}; }
  };
  // Of a bulk stream: a message that is too large to be held whole. It counts as a call.
  struct Large {
    ~Large();
    Arriving message;
    CallSeat seat;
    CallGate* gate = nullptr;  // that was entered
  };
  // Of streams: waiting messages before reading pauses, and before the call ends.
  static constexpr size_t kMaxWaiting = 16, kMostWaiting = 1024;
  static constexpr size_t kMaxWaitingBytes = size_t{64} << 10, kMostWaitingBytes = size_t{1} << 20;
  static constexpr int64_t kMaxStreamMessage = int64_t{64} << 10;
  static constexpr size_t kLargeWindow = size_t{4} << 20;
  static constexpr size_t kPackedFrom = 1024;

  int64_t MostBytes() const;
  void Refuse(const absl::Status& status);
  void End(const absl::Status& status);
  absl::Status TakeUnary(std::string_view bytes);
  absl::Status BeginMessage();
  void OpenWindow(size_t message);
  void Deliver();
  void Unpack();
  void Give(Message message);
  void ReadOn();
  absl::StatusOr<bool> TakeOne();
  absl::StatusOr<bool> TakeLarge();
  bool ReadingPaused() const;
  void WatchUnread();
  void TakeWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostRun() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave();

  NetShared& shared_;
  const std::shared_ptr<Loop> loop_;
  H2Session* session_;  // null: the stream is gone
  const int32_t stream_;
  const GrpcHead head_;
  CancelToken cancel_;
  std::shared_ptr<CallHandler> handler_;
  CallSeat seat_;
  std::string peer_;  // of streams
  Timer deadline_;
  Timer unread_;              // of streams: set while a message waits to be sent
  int64_t unread_taken_ = 0;  // bytes, since it was set
  bool in_gate_ = false, delivered_ = false, half_closed_ = false, told_half_close_ = false;
  char prefix_[kMessagePrefix];
  size_t prefix_size_ = 0;
  Arriving arriving_;                    // of unary calls
  std::string held_;                     // of streams: not yet given to the handler
  std::shared_ptr<Large> large_;         // of streams: the message that arrives
  std::vector<Out> out_;                 // to be sent next
  size_t out_first_ = 0, out_sent_ = 0;  // the one being sent, and how much of it with its prefix
  size_t out_bytes_ = 0;                 // left in all of them
  std::optional<absl::Status> end_;      // what is sent behind them
  Trailers trailers_;

  mutable Mutex mutex_;
  absl::InlinedVector<Out, 1> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t unsent_ ABSL_GUARDED_BY(mutex_) = 0, unsent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Status> said_ ABSL_GUARDED_BY(mutex_);  // no more is accepted
  Trailers said_trailers_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // by the method
  bool wrote_ ABSL_GUARDED_BY(mutex_) = false;
  bool posted_ ABSL_GUARDED_BY(mutex_) = false, paused_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
