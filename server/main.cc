// The program floed.
#include <sys/resource.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/printable_stream.h"
#include "base/program_start.h"
#include "base/threads.h"
#include "config/cpu_budget.h"
#include "server/api/access.h"
#include "server/daemon/crash_report.h"
#include "server/daemon/daemon.h"
#include "server/daemon/listeners.h"
#include "server/daemon/logging.h"
#include "server/daemon/signals.h"
#include "server/flags/flags.h"
#include "server/loading/trial_load.h"
#include "server/net/tls_context.h"

// Shells and containers often start programs with room for 1,024 files, for the sake of select(),
// which nothing here calls, and allow many more: a connection is one each.
static void AllowOpenFiles() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

static int Serve(int argc, char** argv) {
  int exit_code = 0;
  // What is in files and flags cannot steer a terminal.
  floe::PrintableStream out(std::cout), err(std::cerr);
  const auto command = floe::server::ParseCommandLine(argc, argv, out, err, &exit_code);

  if (!command) return exit_code;
  if (command->check_config) {
    for (const std::string& note : command->config.notes) err << note << "\n";
    for (const std::string& warning :
         floe::CpuBudgetWarnings(command->config.models, floe::FindUsableCpus()))
      err << "warning: " << warning << "\n";
    if (const floe::TlsConfig& tls = command->config.server.tls; tls.is_on()) {
      if (const auto made = floe::server::TlsContext::Make(tls); !made.ok()) {
        err << std::string(made.status().message()) << "\n";
        return 1;
      }
    }
    if (const auto made = floe::server::Access::Make(command->config.server.auth); !made.ok()) {
      err << std::string(made.status().message()) << "\n";
      return 1;
    }
    out << "OK\n";
    return 0;
  }
  const auto starter = floe::server::ForkTrialStarter(command->config, argc, argv);
  floe::server::BlockSignals();
  auto activated = floe::server::ActivatedListeners();  // which changes the environment
  floe::StartThreadSource();  // while this thread is as nice as it was started
  const absl::Status logs = floe::server::InitLogging(command->config.log);
  if (!logs.ok()) {
    std::cerr << logs.message() << "\n";
    return 1;
  }
  exit_code = floe::server::RunDaemon(command->config, std::move(activated), starter.get());
  floe::server::FlushLog(floe::Clock::Steady().Now() + std::chrono::seconds(1));
  return exit_code;
}

// Libraries throw where the system gives no more threads or memory.
int main(int argc, char** argv) {
  floe::SkipDeadlockDetection();
  if (floe::server::IsTrial(argc, argv)) floe::server::RunTrial();
  floe::server::ReportCrashes(argv[0]);
  AllowOpenFiles();
  try {
    return Serve(argc, argv);
  } catch (const std::exception& e) {
    floe::server::FlushLog(floe::Clock::Steady().Now() + std::chrono::seconds(1));
    std::cerr << "floed cannot go on: " << e.what() << "\n";
    return 1;
  }
}
