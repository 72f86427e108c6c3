// A process that tries a load, so that whatever the load does to a process, it does not do to the
// one that serves: both sides of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "base/file_identity.h"
#include "base/work_note.h"
#include "server/loading/trial_starter.h"

namespace floe::server {

struct TrialLimits {
  Duration longest = std::chrono::seconds(120);
  const CancelToken* cancel = nullptr;  // nobody wants the load any more; may be null
  // Told now and then how many bytes the load has taken beyond what the process took before it; an
  // error ends the trial. May be null.
  std::function<absl::Status(int64_t bytes)> charge = nullptr;
  // Gets about once a second what the trial is doing. May be null.
  std::function<void(const std::string& doing)> report = nullptr;
};

// Starts a process that calls BeginTrial, and waits for its end. If this process ends before, the
// system ends that one too. Returns what the process gave to EndTrial. If it gave nothing, the
// error says what the trial was doing at its end: UNAVAILABLE after SIGKILL, which the system sends
// where memory is short; INTERNAL after another signal, or where the process exited.
// DEADLINE_EXCEEDED and CANCELLED by the limits, or the error of `charge`: the process was ended
// for this reason. UNAVAILABLE also when no process can be started. Threading: any thread.
absl::StatusOr<FileIdentity> RunTrialProcess(const StartTrial& start, const std::string& request,
                                             const TrialLimits& limits);

// What the two share.
struct TrialBoard {
  static constexpr size_t kMostMessage = 16384;

  WorkNote note;
  int64_t parent = 0;                     // its process id
  std::atomic<int64_t> bytes_before{-1};  // of the process before the load; -1: it has not begun
  std::atomic<bool> ended{false};         // the rest is there
  FileIdentity identity;
  int32_t code = 0;
  bool final = false;  // another try ends the same way
  uint32_t message_size = 0;
  char message[kMostMessage] = {};
};

// In the process: reads the request, keeps this process' WorkNote on the board, and sees to it that
// the process leaves no core file and ends with its parent. The board stays for good.
struct TrialTask {
  std::string request;
  TrialBoard* board = nullptr;
};
absl::StatusOr<TrialTask> BeginTrial();

// In the process, before the load: it may take so many bytes beyond what the process has, and a
// stack for each of so many threads. What is more fails to be allocated. 0: no limit.
void LimitTrialMemory(int64_t bytes, int64_t threads, TrialBoard* board);

// In the process: says how the load ended, of the file of which identity, and ends the process at
// once, without cleaning up.
[[noreturn]] void EndTrial(const absl::StatusOr<FileIdentity>& outcome, TrialBoard* board);

}  // namespace floe::server
