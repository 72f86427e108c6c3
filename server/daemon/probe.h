// Probe: asks the server something, tells the service manager, and watches the models' progress.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/api/rpc.h"

namespace floe::server {

// Calls the probe model by the method's path as clients do, but past every listener and transport,
// so that no client can keep its answer away; checks the answer. A refusal is none. The probe model
// has a worker of its own. Gives up when `cancel` says so.
absl::Status AskProbeModel(const MethodTable& methods, Duration timeout, CancelToken* cancel);

// Threading: any thread; the callbacks run on the probe's own thread.
class Probe {
 public:
  struct Options {
    std::function<absl::Status(Duration timeout, CancelToken* cancel)> ask;
    std::function<void()> feed;              // after each good answer, and while draining
    std::function<void(bool ok)> on_change;  // the server no longer answers, or answers again
    // Every second or more often, but not while `ask` waits for an answer (Timeout at most).
    std::function<void(TimePoint)> watch_models;
    Duration interval = std::chrono::seconds(10);
    const Clock* clock = &Clock::Steady();
  };
  // An answer may take this long; a server that is slow because it is loaded is well. With an
  // interval of a quarter of the watchdog's, which is fed after an answer or at the end of this, no
  // more than three quarters pass between.
  static constexpr Duration kMaxTimeout = std::chrono::seconds(10);
  Duration Timeout() const { return std::min<Duration>(kMaxTimeout, 2 * options_.interval); }
  static constexpr int kFailuresToReport = 2;

  explicit Probe(Options options) : options_(std::move(options)) {}
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // RESOURCE_EXHAUSTED when the system gives no thread.
  absl::Status Start();
  // The listeners go: from now on only the watchdog is fed.
  void Drain();
  // Waits for no answer.
  void Stop();

  // One round at the clock's time; for tests, and for the thread.
  void Step();

 private:
  void Run();

  const Options options_;
  CancelToken cancel_;  // of what is asked
  Mutex mutex_;
  CondVar wake_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint next_ask_ = TimePoint::min();  // the stepping thread's, as is failures_
  int failures_ = 0;
  std::thread thread_;
};

}  // namespace floe::server
