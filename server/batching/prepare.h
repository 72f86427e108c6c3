// From a compiled model and its configuration to what a Batcher needs: slots, warm-up, measured
// costs, limits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "server/batching/batcher.h"

namespace floe::server {

struct BatcherSetup {
  std::unique_ptr<BatchRunner> runner;
  Batcher::Options options;
  std::vector<std::string> notes;  // for the log
};

// Runs the model (warm-up, measuring), so never on a thread that serves. Fails when the model
// cannot be run at all.
absl::StatusOr<BatcherSetup> PrepareBatcher(const Model& model, const ModelConfig& config);

}  // namespace floe::server
