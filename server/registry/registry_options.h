// What a LocalRegistry is made with.
#pragma once

#include <functional>

#include "base/clock.h"
#include "config/config.h"
#include "server/registry/loader.h"
#include "server/registry/trial.h"
#include "server/registry/version_scan.h"

namespace floe::server {

struct RegistryOptions {
  LoadOptions load;
  LifecycleConfig lifecycle;
  const Clock* clock = &Clock::Steady();  // outlives the registry; another one: see Wake
  LoadFunction load_with;                 // empty: LoadModel
  ScanFunction scan_with;                 // empty: ScanVersions
  TrialFunction trial;  // of what lifecycle.trial_load says; empty: nothing is tried
  // How long the end of a version waits for its requests and runs.
  Duration drain = std::chrono::seconds(30);
  std::function<void()>
      on_change;  // the table may have changed; on any thread, and comes back soon
};

}  // namespace floe::server
