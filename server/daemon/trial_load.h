// Trial loads: floed runs itself as another process, which loads a version as the server would.
#pragma once

#include "config/config.h"
#include "server/registry/trial.h"

namespace floe::server {

// How models are loaded, as the configuration has it.
LoadOptions LoadOptionsOf(const ServerConfig& config);

// Tries loads in processes of this very program, as of LoadOptionsOf(config).
TrialFunction TryInProcess(const ServerConfig& config);

// Whether this process was started by such a function: then main calls RunTrial, before any thread
// is made, and nothing else.
bool IsTrial(int argc, const char* const* argv);
[[noreturn]] void RunTrial();

}  // namespace floe::server
