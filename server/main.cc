// floed: the server.
#include <iostream>

#include "base/threads.h"
#include "server/daemon/daemon.h"
#include "server/daemon/logging.h"
#include "server/daemon/signals.h"
#include "server/flags/flags.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto command = floe::server::ParseCommandLine(argc, argv, std::cout, std::cerr, &exit_code);
  if (!command) return exit_code;
  if (command->check_config) {
    std::cout << "OK\n";
    return 0;
  }
  floe::server::BlockSignals();
  floe::StartThreadSource();  // while this thread is as nice as it was started
  floe::server::InitLogging(command->config.log);
  return floe::server::RunDaemon(command->config);
}
