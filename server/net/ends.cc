// The words for the ends of connections.
#include "server/net/ends.h"

#include <spdlog/spdlog.h>

namespace floe::server {

const char* NameOf(EndReason reason) {
  static constexpr const char* kNames[kEndReasons] = {
      "closed by the client",
      "idle",
      "old",
      "the server stops",
      "no protocol that is spoken here (docs/transport.md)",
      "no complete handshake or header block in time",
      "no answer to a PING",
      "against the rules of HTTP/2",
      "too long header blocks",
      "too many calls that are reset",
      "too many frames that bring nothing",
      "too many PINGs",
      "its replies are not read (server.send_timeout_seconds)",
  };
  return kNames[static_cast<size_t>(reason)];
}

const char* CauseOf(EndReason reason) {
  static constexpr const char* kCauses[kEndReasons] = {
      "client",   "idle",    "age",    "drain",  "stranger", "handshake", "keepalive",
      "protocol", "headers", "resets", "frames", "pings",    "unread"};
  return kCauses[static_cast<size_t>(reason)];
}

void EndCounts::Count(EndReason reason, const std::string& peer) {
  constexpr int kLines = 10;
  constexpr auto kEvery = std::chrono::seconds(10);
  ++counts_[static_cast<size_t>(reason)];
  if (reason < EndReason::kStranger) return;
  {
    MutexLock lock(mutex_);
    const TimePoint now = Clock::Steady().Now();
    if (now >= next_) {
      next_ = now + kEvery;
      lines_ = 0;
    }
    if (++lines_ > kLines) return;
  }
  spdlog::info("the connection of {} is closed: {}", peer, NameOf(reason));
}

}  // namespace floe::server
