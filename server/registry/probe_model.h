// The model behind the daemon's own probe.
#pragma once

#include "config/config.h"
#include "server/loading/loader.h"

namespace floe::server {

// Not listed, and not part of anybody's readiness.
inline constexpr char kProbeModel[] = "floe.probe";

ModelConfig ProbeConfig();
LoadSource ProbeSource();

}  // namespace floe::server
