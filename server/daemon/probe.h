// Probe: calls the server, feeds the service manager's watchdog, and watches the models' progress.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/task_thread_pool.h"
#include "server/api/rpc.h"

namespace floe::server {

// Calls the probe model by the method's path, and checks the answer; a refusal is an error. It uses
// no listener and no transport, and the model has a worker of its own, so that clients cannot block
// it. Ends when `cancel` is raised.
absl::Status AskProbeModel(const MethodTable& methods, Duration timeout, CancelToken* cancel);

// Threading: any thread; the callbacks run on the probe's own thread.
class Probe {
 public:
  struct Options {
    std::function<absl::Status(Duration timeout, CancelToken* cancel)> ask;
    std::function<void()> feed;              // after each good answer, and while draining
    std::function<void(bool ok)> on_change;  // the server no longer answers, or answers again
    // At least every second, except while `ask` waits for an answer (at most Timeout).
    std::function<void(TimePoint)> watch_models;
    Duration interval = std::chrono::seconds(10);
    const Clock* clock = &Clock::Steady();
  };
  // An answer may take this long, because a loaded server is slow. The interval is a quarter of the
  // watchdog's time, so at most three quarters of it pass from one answer to the next.
  static constexpr Duration kMaxTimeout = std::chrono::seconds(10);
  Duration Timeout() const { return std::min<Duration>(kMaxTimeout, 2 * options_.interval); }
  static constexpr int kFailuresToReport = 2;

  explicit Probe(Options options);
  ~Probe() { Stop(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread.
  absl::Status Start() { return thread_.Start(); }
  // The listeners close: from now on it only feeds the watchdog.
  void Drain();
  // Cancels a call in progress.
  void Stop();

  // Does what is due at the clock's time; for tests, and for the thread.
  void Step();

 private:
  const Options options_;
  CancelToken cancel_;  // of what is asked
  std::atomic<bool> draining_{false}, stopping_{false};
  TimePoint next_ask_ = TimePoint::min();  // the stepping thread's, as is failures_
  int failures_ = 0;
  TaskThreadPool thread_;
};

}  // namespace floe::server
