// SIGTERM and SIGINT as an event to wait for.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Blocks SIGTERM and SIGINT and ignores SIGPIPE for this thread and those it starts from now on.
// Before any thread.
void BlockSignals();

// Waits for the signals on a thread of its own. The first asks the process to end; the second ends
// it at once, with 1. Threading: any thread. At most one in a process, after BlockSignals.
class SignalWatcher {
 public:
  // `on_first` runs on the watcher's thread.
  explicit SignalWatcher(std::function<void()> on_first);
  ~SignalWatcher();

  // Ends the process with 0 at `when` if it is still there: draining has its limit.
  void ExitAt(TimePoint when);

 private:
  void Watch();

  std::function<void()> on_first_;
  std::atomic<bool> leaving_{false};
  Mutex mutex_;
  std::optional<TimePoint> exit_at_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace floe::server
