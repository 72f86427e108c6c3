// The RPCs as functions of bytes: what api/ offers to any transport. Nothing here knows gRPC's C++
// library.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "server/api/access.h"
#include "server/api/roles.h"

namespace floe::server {

enum class MethodKind : uint8_t { kUnary, kStream };
struct MethodInfo {
  MethodKind kind = MethodKind::kUnary;
  MethodRole role = MethodRole::kInference;
  int64_t max_bytes = 0;  // of a message to it; 0: what the transport takes
  // Of streams: their messages may be as large as those of unary calls, and so may each of their
  // replies, of which one is written at a time (Credit). Their calls end before the server does.
  bool bulk = false;
  bool is_inference = false;  // its calls count, log and follow themselves
};

inline constexpr char kRequestIdKey[] = "x-request-id";
inline constexpr char kTraceparentKey[] = "traceparent";
// What is sent behind an inference whose metadata kTimingKey asks for it: microseconds.
inline constexpr char kTimingKey[] = "floe-timing";
inline constexpr char kQueueTimeKey[] = "floe-queue-us", kRunTimeKey[] = "floe-run-us";

// What is known of a call before its first message. Owns what it holds.
struct CallHead {
  std::string_view path;    // "/tensorflow.serving.PredictionService/Predict", of the table
  std::string peer;         // "127.0.0.1:40213", "[::1]:40213" or "unix"
  bool local = false;       // a process of this machine
  ListenerRoles roles;      // of the listener that it came by
  Caller caller;            // who that is
  uint64_t principal = 0;   // the same for the calls of one connection; 0: not known
  std::string request_id;   // the caller's x-request-id; "": none was sent
  std::string traceparent;  // as of W3C Trace Context; "": none was sent
  TimePoint arrived = TimePoint::min();
  TimePoint deadline = TimePoint::max();
  std::shared_ptr<CancelToken> cancel;  // raised when the caller leaves; never null
  absl::InlinedVector<std::pair<std::string, std::string>, 2> metadata;  // keys that begin "floe-"

  // Value of a key, or null.
  const std::string* FindMetadata(std::string_view key) const {
    for (const auto& [name, value] : metadata)
      if (name == key) return &value;
    return nullptr;
  }
};

// Notes what methods may ask for: "floe-..." keys, the request id and the trace context.
void AddMetadata(std::string_view key, std::string_view value, CallHead* head);

// A received message: contiguous bytes kept alive by `owner`.
struct Message {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// What is sent behind the status, beside it.
using Trailers = absl::InlinedVector<std::pair<std::string, std::string>, 1>;

// Where answers go. The transport implements it.
// Threading: any thread, but one call at a time per responder. Finish exactly once and last. The
// transport keeps the call's resources until Finish; calls after the caller left are ignored.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Write(std::string&& message) = 0;  // one message; small ones may be left there
  // For unary calls after one Write, or none when not OK.
  virtual void Finish(const absl::Status& status, const Trailers& trailers) = 0;
  void Finish(const absl::Status& status) { Finish(status, {}); }
  // Before the Finish of a unary call: its thread has more work waiting, so what takes time is
  // better done on another one.
  virtual void Defer() {}

  // Of streams: bytes that may be written now before the caller counts as one who does not read;
  // CallHandler::OnWritable says when there are more.
  virtual int64_t Credit() const { return INT64_MAX; }
  // Of streams: no OnMessage comes from the next one on, until Resume. There is no byte credit for
  // messages to the server: the transport reads one message, of a bounded size, at a time.
  virtual void Pause() {}
  virtual void Resume() {}
};

// A call in progress. The transport calls it, one method at a time but for OnDrain.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // Unary calls get one message, and nothing else: the transport lets go of the handler then.
  virtual void OnMessage(Message message) = 0;
  // Instead of a unary call's message, which is not taken for this reason: what to answer.
  virtual absl::Status OnRefused(const absl::Status& status) { return status; }
  virtual void OnHalfClose() {}  // the caller will send no more
  virtual void OnWritable() {}   // all that was written is sent
  // The server stops: what is written now is the last. True: the handler of a bulk stream ends the
  // call itself once it has answered what it was sent, and takes no more.
  virtual bool OnDrain() { return false; }
  virtual void OnDone() {}  // the call is over, by Finish or because the caller left
};

class CallWatch;

// Opens a call by its head alone. An error refuses it, before its message is read.
using OpenCall = std::function<absl::StatusOr<std::shared_ptr<CallHandler>>(
    const CallHead& head, std::shared_ptr<Responder> responder)>;
class Method {
 public:
  Method(const MethodInfo& info, OpenCall open) : info_(info), open_(std::move(open)) {}
  const MethodInfo& info() const { return info_; }
  void SetWatch(CallWatch* watch) { watch_ = watch; }
  // The only way to open a call, so that nobody passes by the roles: PERMISSION_DENIED or
  // UNAUTHENTICATED where the caller may not call the method by its listener (CheckAccess).
  absl::StatusOr<std::shared_ptr<CallHandler>> Open(const CallHead& head,
                                                    std::shared_ptr<Responder> responder) const;

 private:
  MethodInfo info_;
  OpenCall open_;
  CallWatch* watch_ = nullptr;
};

// A unary method that needs nothing before its message; errors go through Finish. The answer may
// come later from another thread.
using UnaryFunction = std::function<void(const CallHead& head, Message request,
                                         std::shared_ptr<Responder> responder)>;
Method UnaryMethod(MethodRole role, UnaryFunction function, int64_t max_bytes = 0);

// A method that is known but not offered: UNIMPLEMENTED with the reason.
Method RefusedMethod(MethodRole role, const std::string& reason);

// Opens, and gives it its message, of a unary method.
void Invoke(const Method& method, const CallHead& head, Message message,
            const std::shared_ptr<Responder>& responder);

// Path -> method. Filled at start-up, then read by any thread.
class MethodTable {
 public:
  void Add(const std::string& path, Method method) {
    methods_.insert_or_assign(path, std::move(method));
  }
  const Method* Find(const std::string& path) const;  // null when there is none
  std::vector<std::string> Paths() const;
  const std::map<std::string, Method>& methods() const { return methods_; }
  // Of all methods there are, from now on. Outlives their calls.
  void SetWatch(CallWatch* watch);
  // For calls that no method takes; null: there is none.
  CallWatch* watch() const { return watch_; }

 private:
  std::map<std::string, Method> methods_;
  CallWatch* watch_ = nullptr;
};

// UNIMPLEMENTED: names the path and the nearest ones there are.
absl::Status UnknownMethodError(const MethodTable& table, const std::string& path);

}  // namespace floe::server
