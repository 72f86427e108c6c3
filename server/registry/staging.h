// A model's configurations: the active one, and the one that a reload tries beside it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/registry/model_state.h"

namespace floe::server {

void SetCurrent(ModelState* model, std::shared_ptr<const ModelConfig> config,
                const CpuShares& cpu_shares);

// The same configuration again, of a model that is watched and at rest: nothing is scanned.
bool Keep(ModelState* model, const std::shared_ptr<const ModelConfig>& config,
          const CpuShares& cpu_shares);
// Scans and loads beside what is active. Versions that have failed, and may succeed, are retried.
// Where the configuration loads to the same as before, versions known to fail, also from an attempt
// before, are no reason for this one to fail.
void Stage(ModelState* model, std::shared_ptr<const ModelConfig> config,
           const CpuShares& cpu_shares);
// What is staged or kept becomes current; without either the model is removed.
void Commit(ModelState* model);

// How far the staged configuration is. An error ends the reload. A scan that has not ended holds up
// a model that stays as it is only while `wait_for_scans`.
enum class StagedProgress { kWaiting, kReady };
absl::StatusOr<StagedProgress> ProgressOfStaged(const ModelState& model, bool wait_for_scans);
// "version 3 is being loaded": what that waits for.
std::string StagedWaitsFor(const ModelState& model);

// Once the staged configuration is active.
bool WillBeAvailable(const ModelState& model, int64_t version);
// Served now, and no longer then, though the active configuration would keep it.
bool WillBeDropped(const ModelState& model, int64_t version);

}  // namespace floe::server
