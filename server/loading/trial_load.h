// Trial loads: another process of floed loads a version as the server would.
#pragma once

#include <memory>

#include "config/config.h"
#include "server/loading/loader.h"
#include "server/loading/trial_starter.h"

namespace floe::server {

// The configuration's options of loading models.
LoadOptions LoadOptionsOf(const ServerConfig& config);

// For main, before any thread exists, with its arguments. Null where the configuration wants no
// trials, and where there can be no such process: then trials start by exec.
std::unique_ptr<TrialStarter> ForkTrialStarter(const ServerConfig& config, int argc, char** argv);

// Runs trial loads in processes of this program, with LoadOptionsOf(config). `starter` starts them,
// or where it cannot, exec. Null: always exec. `devices` say what a model is tried for, null: the
// CPU; the processes use none.
TrialFunction TryInProcess(const ServerConfig& config, TrialStarter* starter,
                           std::shared_ptr<ModelDevices> devices);

// Whether this process is a trial load by exec. Then main only calls RunTrial, before any thread
// exists.
bool IsTrial(int argc, const char* const* argv);
[[noreturn]] void RunTrial();

}  // namespace floe::server
