// FloodGuard: tells clients that work from those that only make work.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace floe::server {

// Tokens that come back with time, and with useful work. Threading: one thread at a time.
class TokenBucket {
 public:
  TokenBucket(int64_t most, int64_t per_second, TimePoint now)
      : most_(most), per_second_(per_second), tokens_(most), filled_(now) {}

  // False: there are too few.
  bool Take(int64_t tokens, TimePoint now) {
    const auto millis =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - filled_).count();
    if (const int64_t back = millis * per_second_ / 1000; back > 0) {
      Give(back);
      filled_ = now;
    }
    tokens_ -= tokens;
    return tokens_ >= 0;
  }
  void Give(int64_t tokens) { tokens_ = std::min(most_, tokens_ + tokens); }
  int64_t missing() const { return most_ - tokens_; }

 private:
  const int64_t most_, per_second_;
  int64_t tokens_;
  TimePoint filled_;
};

// Of one connection. Deadlines that pass make honest clients reset calls: hundreds a second are
// allowed. Frames that bring nothing are allowed in proportion to the messages both ways.
class FloodGuard {
 public:
  explicit FloodGuard(TimePoint now) : resets_(4000, 500, now), frames_(8000, 2000, now) {}

  // A call that was reset by the client, or by the server because of what the client sent.
  bool OnReset(TimePoint now) { return resets_.Take(1, now); }
  // A frame without data.
  bool OnIdleFrame(TimePoint now) { return frames_.Take(1, now); }
  // Data in small pieces costs as much.
  bool OnData(size_t bytes, TimePoint now) { return bytes >= kSmallData || frames_.Take(1, now); }
  // Bytes of fields, unpacked, of one head.
  bool OnHeader(size_t bytes, TimePoint now) {
    return frames_.Take(static_cast<int64_t>(bytes / kHeaderBytes), now);
  }
  // It has sent frames that bring nothing, more than clients that work do.
  bool IsSuspect() const { return frames_.missing() > 200; }
  // A call was opened, or data was sent.
  void OnWork() { frames_.Give(8); }

 private:
  static constexpr size_t kSmallData = 256, kHeaderBytes = 1024;
  TokenBucket resets_, frames_;
};

}  // namespace floe::server
