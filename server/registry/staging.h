// A model's configurations: the active one, and the one that a reload tries beside it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/registry/model_state.h"

namespace floe::server {

void SetCurrent(ModelState* model, std::shared_ptr<const ModelConfig> config,
                const CpuShares& weights);

// Looks and loads beside what is active. Versions that have failed, and may succeed, are tried
// again. Where the configuration loads to the same as before, versions known to fail, also from an
// attempt before, are no reason for this one to fail.
void Stage(ModelState* model, std::shared_ptr<const ModelConfig> config, const CpuShares& weights);
void Commit(ModelState* model);   // staged becomes current
void Abandon(ModelState* model);  // staged is dropped
void Remove(ModelState* model);   // there is no configuration any more

// How far the staged configuration is. An error ends the reload. When not `patient`, a scan that
// has not ended does not hold up what stays as it is.
enum class StagedProgress { kWaiting, kReady };
absl::StatusOr<StagedProgress> ProgressOfStaged(const ModelState& model, bool patient);
// "version 3 is being loaded": what that waits for.
std::string StagedWaitsFor(const ModelState& model);

// Once the staged configuration is active.
bool WillBeAvailable(const ModelState& model, int64_t version);
// Served now, and no longer then, though the active configuration would keep it.
bool WillBeDropped(const ModelState& model, int64_t version);

}  // namespace floe::server
