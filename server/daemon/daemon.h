// The life of the process: listen, load, say ready, serve, drain.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "server/loading/trial_starter.h"

namespace floe::server {

// Serves until SIGTERM or SIGINT and returns the exit status: 0 after a drain. 1 when a listener
// cannot be opened, backend is cuda without a GPU, the system gives no threads, or a model fails
// where exit_on_error is set. Work that hangs does not keep it: the process then ends before this
// returns, with the same status. `config` is valid; `activated`: ActivatedListeners(); `starter`:
// of trial loads, may be null. Once in a process, after BlockSignals and InitLogging, before other
// threads.
int RunDaemon(const ServerConfig& config, std::vector<std::string> activated,
              TrialStarter* starter);

}  // namespace floe::server
