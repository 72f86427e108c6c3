// Processes for work that may crash, hang or take all memory: started without this process's files,
// limited by the system, ended with their owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace floe {

// Of a process: one of its own, which it shares with those that it starts, or that of this process.
enum class ProcessGroup { kOwn, kOurs };

// Starts a program: its path and its arguments. `files[n]` becomes its file n; it inherits no
// others. It has no blocked or ignored signals, and the niceness of the calling thread. Threading:
// any thread.
absl::StatusOr<pid_t> SpawnChild(const std::vector<std::string>& command,
                                 absl::Span<const int> files, ProcessGroup group);

// What a process may use. Numbers beyond what this process may set are lowered to that.
struct ChildLimits {
  // Of its life. Beyond these SIGXCPU ends it.
  int64_t cpu_seconds = 0;
  // Memory of its own, and addresses, which mapped files take as well. What is more fails to be
  // allocated. Not limited in builds with sanitizers, which take terabytes of addresses.
  int64_t data_bytes = 0;
  int64_t address_bytes = 0;
};

// A child of this process, killed and waited for at the end. Where it has a group of its own, what
// it started ends with it. Threading: one thread at a time.
class ChildProcess {
 public:
  explicit ChildProcess(pid_t pid = -1) : pid_(pid) {}  // -1: none
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() {
    if (pid_ > 0) Kill();
  }

  pid_t pid() const { return pid_; }  // -1 once it has ended

  // `most` is what later calls may raise the limits to; the process cannot raise them beyond. It
  // leaves no core file and makes no files.
  absl::Status Limit(const ChildLimits& limits, const ChildLimits& most) const;

  // Whether it has ended; then with what, as waitpid says.
  bool Ended(int* how);

  // Kills it and waits for it: for five seconds at most, since one that waits for storage that
  // hangs may not even end. Gives what it ended with, as waitpid says; SIGKILL where unknown.
  int Kill();

 private:
  pid_t pid_;
};

// "SIGSEGV", or "signal 99".
std::string SignalName(int signal);

}  // namespace floe
