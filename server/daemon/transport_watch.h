// TransportWatch: whether the transport's threads still do anything.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// CPU time of all threads of this process.
Duration ProcessCpuTime();

// Asks the transport something over a connection that no client can take, on a thread of its own,
// again and again. Clients may keep it busy, and the answer away, for as long as they like: it
// stands still only when no answer comes and the process does next to nothing meanwhile.
//
// Threading: Start and Stop once; Check by one thread.
class TransportWatch {
 public:
  struct Options {
    // DEADLINE_EXCEEDED: no answer came. Anything else counts as one.
    std::function<absl::Status(Duration timeout, CancelToken* cancel)> ask;
    std::function<Duration()> cpu_time = ProcessCpuTime;
    Duration interval = std::chrono::seconds(10);
    const Clock* clock = &Clock::Steady();
  };
  // Neither an answer nor work for so long: it stands still.
  static constexpr Duration kStandstill = std::chrono::minutes(2);
  // Of one CPU: more is work.
  static constexpr int kBusyPercent = 5;

  explicit TransportWatch(Options options);
  ~TransportWatch() { Stop(); }
  TransportWatch(const TransportWatch&) = delete;
  TransportWatch& operator=(const TransportWatch&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread.
  absl::Status Start();
  void Stop();

  // UNAVAILABLE: it stands still. To be called every now and then.
  absl::Status Check();

  // Asks once; for tests, and for the thread.
  void Ask();

 private:
  void Run();

  const Options options_;
  CancelToken cancel_;
  TimePoint looked_;   // of Check, as is worked_
  Duration cpu_used_;  // by then
  TimePoint worked_;
  Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint silent_since_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();  // max(): nothing is asked
  std::thread thread_;
};

}  // namespace floe::server
