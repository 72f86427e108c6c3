// SIGTERM, SIGINT and SIGHUP as events to wait for.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
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

  // Ends the process with `code` at `when` if it is still there: ending has its limit. `waits_for`
  // is logged then. The last call counts.
  void ExitAt(TimePoint when, int code, std::string waits_for);

 private:
  void Watch();

  const std::function<void()> on_first_, on_hangup_;
  std::atomic<bool> leaving_{false};
  Mutex mutex_;
  struct Exit {
    TimePoint when;
    int code = 0;
    std::string waits_for;
  };
  std::optional<Exit> exit_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace floe::server
