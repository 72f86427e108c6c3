// How processes of trial loads are started: by exec, or by fork from a process kept for this.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"

namespace floe::server {

// The board's number in the process.
inline constexpr int kTrialBoard = 3;

// What the process gets as standard input, as both standard output and error, and as the board. It
// inherits no other files.
struct TrialFiles {
  int input = -1, output = -1, board = -1;
};

// Starts a process and gives its id. It is a child of this process, with a group of its own and the
// niceness of the calling thread. Threading: any thread.
using StartTrial = std::function<absl::StatusOr<pid_t>(const TrialFiles& files)>;

// The process is a program: its path and its arguments.
StartTrial ByExec(std::vector<std::string> command);

// A process that was forked while this one had one thread, and forks again for each trial. A
// program of a hundred shared libraries takes 30 ms to start; a fork takes one. It ends with this
// object, or with this process.
class TrialStarter {
 public:
  // The trials call `run`. `title` is this program's arguments in memory: the starter and the
  // trials put their names there, for ps. Call this while the process has one thread. From then on
  // this process is the parent of its descendants' orphans. UNAVAILABLE: there can be no such
  // process.
  static absl::StatusOr<std::unique_ptr<TrialStarter>> Fork(absl::Span<char> title, void (*run)());
  ~TrialStarter();
  TrialStarter(const TrialStarter&) = delete;
  TrialStarter& operator=(const TrialStarter&) = delete;

  pid_t pid() const { return pid_; }

  // As StartTrial says. UNAVAILABLE: the process has ended, or has no room for another.
  absl::StatusOr<pid_t> Start(const TrialFiles& files);

 private:
  TrialStarter(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  const pid_t pid_;
  Mutex mutex_;
  const int socket_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::server
