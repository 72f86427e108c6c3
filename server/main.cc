// floed: the server.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/cpus.h"
#include "base/threads.h"
#include "config/cpu_budget.h"
#include "server/daemon/daemon.h"
#include "server/daemon/listeners.h"
#include "server/daemon/logging.h"
#include "server/daemon/signals.h"
#include "server/flags/flags.h"

// Large blocks, such as a model's weights, are pages of their own and go back with the model. glibc
// would otherwise learn from the first of them to keep such blocks in its arenas, and every swap
// would leave another hole. Threads come and go with versions too, and each would have glibc touch
// another of eight arenas per CPU: one per CPU is enough where requests allocate next to nothing.
static void KeepLargeBlocksApart() {
  mallopt(M_MMAP_THRESHOLD, 2 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  mallopt(M_ARENA_MAX, static_cast<int>(std::max(2u, std::thread::hardware_concurrency())));
}

// Debian builds Abseil with its search for lock cycles, which gRPC's mutexes go through at every
// lock: a tenth of what a small request costs.
static void SkipDeadlockDetection() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

// Shells and containers often start programs with room for 1,024 files, for the sake of select(),
// which nothing here calls, and allow many more: a connection is one each.
static void AllowOpenFiles() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char** argv) {
  KeepLargeBlocksApart();
  SkipDeadlockDetection();
  AllowOpenFiles();
  int exit_code = 0;
  const auto command = floe::server::ParseCommandLine(argc, argv, std::cout, std::cerr, &exit_code);
  if (!command) return exit_code;
  if (command->check_config) {
    for (const std::string& note : command->config.notes) std::cerr << note << "\n";
    for (const std::string& warning :
         floe::CpuBudgetWarnings(command->config.models, floe::FindUsableCpus()))
      std::cerr << "warning: " << warning << "\n";
    std::cout << "OK\n";
    return 0;
  }
  floe::server::BlockSignals();
  auto activated = floe::server::ActivatedListeners();  // which changes the environment
  floe::StartThreadSource();  // while this thread is as nice as it was started
  floe::server::InitLogging(command->config.log);
  return floe::server::RunDaemon(command->config, std::move(activated));
}
