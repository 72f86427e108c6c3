// TransportWatch: whether the transport's threads still do anything.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "base/clock.h"

namespace floe::server {

// CPU time of all threads of this process.
Duration ProcessCpuTime();

// Calls the transport over a connection that clients cannot use. Clients may keep the transport
// busy, and delay the answer, for any time. So it stands still only if it does not answer and the
// process does almost nothing meanwhile. Threading: one thread.
class TransportWatch {
 public:
  struct Options {
    // Whether the last call was answered; then the next one starts (SelfCaller::Answered).
    std::function<bool()> answered;
    std::function<Duration()> cpu_time = ProcessCpuTime;
    const Clock* clock = &Clock::Steady();
  };
  // Without an answer and without work for this time, the transport stands still.
  static constexpr Duration kStandstill = std::chrono::minutes(2);
  // Of one CPU; more counts as work.
  static constexpr int kBusyPercent = 5;

  explicit TransportWatch(Options options);

  // UNAVAILABLE: it stands still. To be called every few seconds; it does not block.
  absl::Status Check();

 private:
  const Options options_;
  TimePoint checked_, answered_, worked_;
  Duration cpu_used_;  // at checked_
};

}  // namespace floe::server
