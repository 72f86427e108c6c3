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
#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"

namespace floe::server {

// What a transport knows of a call besides its messages.
struct CallInfo {
  // Views, valid while the method that is given them has not returned.
  std::string_view path;  // "/tensorflow.serving.PredictionService/Predict"
  absl::InlinedVector<std::pair<std::string_view, std::string_view>, 8>
      metadata;  // keys in lower case
  TimePoint deadline = TimePoint::max();
  bool local = false;                   // the caller is a process of this machine
  uint64_t caller = 0;                  // the same for the calls of one connection; 0: not known
  std::shared_ptr<CancelToken> cancel;  // raised when the caller leaves; never null

  // First value of a key, or null.
  const std::string_view* FindMetadata(std::string_view key) const;
};

// A received message: contiguous bytes kept alive by `owner`.
struct Message {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// Where answers go. The transport implements it.
// Threading: any thread, but one call at a time per responder. Finish exactly once and last. The
// transport keeps the call's resources until Finish; calls after the caller left are ignored.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Write(std::string&& message) = 0;        // one message; small ones may be left there
  virtual void Finish(const absl::Status& status) = 0;  // trailers; for unary calls after one
                                                        // Write, or none when not OK
};

// One streaming call in progress. Methods are called by the transport, one at a time; destroyed
// after OnDone.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  virtual void OnMessage(Message message) = 0;
  virtual void OnHalfClose() = 0;  // the caller will send no more
  virtual void OnDone() = 0;       // the call is over, by Finish or because the caller left
};

// Unary: starts the call; the answer may come later from another thread. Errors go through Finish
// too.
using UnaryMethod = std::function<void(const CallInfo& call, Message request,
                                       std::shared_ptr<Responder> responder)>;
using StreamMethod = std::function<std::unique_ptr<StreamHandler>(
    const CallInfo& call, std::shared_ptr<Responder> responder)>;

// Path -> method. Filled at start-up, then read by any thread.
class MethodTable {
 public:
  void AddUnary(const std::string& path, UnaryMethod method) { unary_[path] = std::move(method); }
  void AddStream(const std::string& path, StreamMethod method) {
    stream_[path] = std::move(method);
  }
  // Null when there is none.
  const UnaryMethod* FindUnary(const std::string& path) const;
  const StreamMethod* FindStream(const std::string& path) const;
  std::vector<std::string> Paths() const;
  const std::map<std::string, UnaryMethod>& unary() const { return unary_; }

 private:
  std::map<std::string, UnaryMethod> unary_;
  std::map<std::string, StreamMethod> stream_;
};

// UNIMPLEMENTED: names the path and the nearest ones there are.
absl::Status UnknownMethodError(const MethodTable& table, const std::string& path);

}  // namespace floe::server
