// Trial loads: floed starts itself as another process, which loads a version as the server would.
#pragma once

#include "config/config.h"
#include "server/registry/loader.h"

namespace floe::server {

// The configuration's options of loading models.
LoadOptions LoadOptionsOf(const ServerConfig& config);

// Runs trial loads in processes of this program, with LoadOptionsOf(config).
TrialFunction TryInProcess(const ServerConfig& config);

// Whether this process is a trial load. Then main only calls RunTrial, before any thread exists.
bool IsTrial(int argc, const char* const* argv);
[[noreturn]] void RunTrial();

}  // namespace floe::server
