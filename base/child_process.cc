#include "base/child_process.h"

#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"

namespace floe {
namespace {

#ifdef FLOE_SANITIZED
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

absl::Status SetLimit(pid_t pid, __rlimit_resource resource, int64_t now, int64_t most) {
  rlimit limit;
  if (::prlimit(pid, resource, nullptr, &limit) != 0) return absl::ErrnoToStatus(errno, "prlimit");
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(std::max(now, most)));
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(now));
  if (::prlimit(pid, resource, &limit, nullptr) != 0) return absl::ErrnoToStatus(errno, "prlimit");
  return absl::OkStatus();
}

constexpr Duration kSlowAfter = std::chrono::seconds(5);

// Whether `done` says so before so long.
template <typename Done>
bool Within(Duration longest, const Done& done) {
  const TimePoint end = Clock::Steady().Now() + longest;
  while (!done()) {
    if (Clock::Steady().Now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// Those of a group that was killed, where they come to this process when their parent ends.
void WaitForOrphans(pid_t group) {
  (void)Within(kSlowAfter, [group] { return ::waitpid(-group, nullptr, WNOHANG) < 0; });
}

}  // namespace

absl::StatusOr<pid_t> SpawnChild(const std::vector<std::string>& command,
                                 absl::Span<const int> files, ProcessGroup group) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t traits;
  posix_spawnattr_init(&traits);
  const absl::Cleanup destroy = [&] {
    posix_spawnattr_destroy(&traits);
    posix_spawn_file_actions_destroy(&actions);
  };
  for (size_t n = 0; n < files.size(); ++n)
    posix_spawn_file_actions_adddup2(&actions, files[n], static_cast<int>(n));
  posix_spawn_file_actions_addclosefrom_np(&actions, static_cast<int>(files.size()));
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&traits, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&traits, &signals);
  posix_spawnattr_setpgroup(&traits, 0);
  const int own_group = group == ProcessGroup::kOwn ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(
      &traits, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | own_group));
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, command[0].c_str(), &actions, &traits, arguments.data(), environ);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("posix_spawn ", command[0]));
  return pid;
}

absl::Status ChildProcess::Limit(const ChildLimits& limits, const ChildLimits& most) const {
  // A core file of one byte is none, and with this number none goes to a program either
  // (core_pattern).
  FLOE_RETURN_IF_ERROR(SetLimit(pid_, RLIMIT_CORE, 1, 1));
  FLOE_RETURN_IF_ERROR(SetLimit(pid_, RLIMIT_FSIZE, 0, 0));
  // Beyond the larger one SIGKILL comes, which would not say why.
  FLOE_RETURN_IF_ERROR(SetLimit(pid_, RLIMIT_CPU, limits.cpu_seconds,
                                std::max(limits.cpu_seconds, most.cpu_seconds) + 2));
  if (!kLimitsMemory) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(SetLimit(pid_, RLIMIT_DATA, limits.data_bytes, most.data_bytes));
  return SetLimit(pid_, RLIMIT_AS, limits.address_bytes, most.address_bytes);
}

bool ChildProcess::Ended(int* how) {
  // Its number stays its group's until it has been waited for.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno == EINTR) return false;
    *how = 0;  // somebody else has waited for it
    pid_ = -1;
    return true;
  }
  if (info.si_pid == 0) return false;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, how, 0) < 0 && errno == EINTR) {
  }
  WaitForOrphans(std::exchange(pid_, -1));
  return true;
}

int ChildProcess::Kill() {
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int how = SIGKILL;
  if (!Within(kSlowAfter, [&] { return Ended(&how); })) pid_ = -1;
  return how;
}

std::string SignalName(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

}  // namespace floe
