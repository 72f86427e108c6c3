// Why connections end, counted and logged.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

enum class EndReason : uint8_t {
  kClient,     // it closed the connection
  kIdle,       // without a call for connection_idle_seconds
  kAge,        // older than connection_age_seconds
  kDrain,      // the server stops
  kStranger,   // it speaks something else
  kHandshake,  // its first words, or a header block, took too long
  kKeepalive,  // it answered no PING
  kProtocol,   // it broke the rules of HTTP/2
  kHeaders,    // too long header blocks
  kResets,     // too many calls that it reset, or made the server reset
  kFrames,     // too many frames that bring nothing
  kPings,      // too many PINGs
  kUnread,     // replies that it did not read
};
inline constexpr int kEndReasons = 13;
const char* NameOf(EndReason reason);   // for the log
const char* CauseOf(EndReason reason);  // for labels of metrics: "client", "idle"

// Threading: any thread.
class EndCounts {
 public:
  // Counts it; logs a line unless it is the client's or the server's wish, some in ten seconds.
  void Count(EndReason reason, const std::string& peer);
  int64_t count(EndReason reason) const { return counts_[static_cast<size_t>(reason)].load(); }

 private:
  std::array<std::atomic<int64_t>, kEndReasons> counts_ = {};
  Mutex mutex_;
  TimePoint next_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace floe::server
