// The thread that handles SIGTERM, SIGINT, SIGHUP and SIGUSR2, and the time limit of the end.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Blocks these signals and ignores SIGPIPE for this thread and those it starts from
// now on. Before any thread.
void BlockSignals();

// Waits for the signals on a thread of its own. The first SIGTERM or SIGINT asks the process to
// end; the second ends it at once, with 1. SIGHUP has the configuration read again, SIGUSR2 sets
// the log level to debug and back. A log that blocks does not delay the end. Threading: any thread.
// At most one in a process, after BlockSignals and InitLogging.
class SignalWatcher {
 public:
  // Both run on the watcher's thread, return soon and log nothing. `on_first` returns a time limit:
  // if ExitAt is not called until then, the process ends with 1. Throws std::system_error when the
  // system gives no thread.
  SignalWatcher(std::function<TimePoint()> on_first, std::function<void()> on_hangup);
  ~SignalWatcher();

  // Ends the process with `code` at `when`, unless it has ended, and logs `waits_for`. The last
  // call counts.
  void ExitAt(TimePoint when, int code, std::string waits_for);

 private:
  void Watch();
  // Ends the process once the text is logged, or after kLastWords.
  [[noreturn]] static void Exit(int code, const std::string& text);

  static constexpr Duration kLastWords = std::chrono::milliseconds(200);

  const std::function<TimePoint()> on_first_;
  const std::function<void()> on_hangup_;
  std::atomic<bool> leaving_{false};
  Mutex mutex_;
  struct End {
    TimePoint when;
    int code = 0;
    std::string waits_for;
  };
  std::optional<End> end_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace floe::server
