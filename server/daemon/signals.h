// SIGTERM, SIGINT and SIGHUP as events to wait for.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Blocks SIGTERM, SIGINT and SIGHUP and ignores SIGPIPE for this thread and those it starts from
// now on. Before any thread.
void BlockSignals();

// Waits for the signals on a thread of its own. The first asks the process to end; the second ends
// it at once, with 1. SIGHUP asks for the configuration to be read again. Threading: any thread. At
// most one in a process, after BlockSignals.
class SignalWatcher {
 public:
  // Both run on the watcher's thread, and come back soon.
  SignalWatcher(std::function<void()> on_first, std::function<void()> on_hangup);
  ~SignalWatcher();

  // Ends the process with 0 at `when` if it is still there: draining has its limit.
  void ExitAt(TimePoint when);

 private:
  void Watch();

  const std::function<void()> on_first_, on_hangup_;
  std::atomic<bool> leaving_{false};
  Mutex mutex_;
  std::optional<TimePoint> exit_at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace floe::server
