// The life of the process: listen, load, say ready, serve, drain.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace floe::server {

// Serves until SIGTERM or SIGINT and returns the exit status: 0 after a drain; 1 when a listener
// cannot be opened or none of the configured models can be served. `config` is valid; `activated`:
// ActivatedListeners(). Once in a process, after BlockSignals and InitLogging, before other
// threads.
int RunDaemon(const ServerConfig& config, std::vector<std::string> activated);

}  // namespace floe::server
