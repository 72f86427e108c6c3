// A reload of one model: its new configuration is staged, loads beside the active one, and then
// takes its place or is dropped.
#include "server/registry/staging.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/registry/desired.h"

namespace floe::server {
namespace {

// Whether both load to the same: only which versions, or what they are called, may differ.
bool LoadAlike(ModelConfig a, ModelConfig b) {
  for (ModelConfig* config : {&a, &b}) {
    config->versions = {};
    config->version_labels.clear();
  }
  return a == b;
}

// The model stays as it is.
bool SameConfig(const ModelState& model) {
  return model.current && model.current->config() == model.staged->config();
}

// Versions that the active configuration came upon by itself are now named one by one: whoever
// does so means each of them.
bool NewlyNamed(const ModelState& model) {
  constexpr auto kSpecific = VersionPolicy::Kind::kSpecific;
  return model.staged->config().versions.kind == kSpecific &&
         (!model.current || model.current->config().versions.kind != kSpecific);
}

// It had failed before the reload, which has it tried again.
bool Retries(const ModelState& model, const DesiredVersion& one) {
  return one.failed->last_reload < model.reloads && MayRetryLoad(one.key, *one.failed);
}

// A version that failed before this reload does not hold it up. Where something changes, a label
// say, it is waited for while it is retried.
bool MayStayFailed(const ModelState& model, const DesiredVersion& one) {
  if (one.failed->first_reload >= model.reloads || NewlyNamed(model)) return false;
  return SameConfig(model) || !Retries(model, one);
}

bool IsAvailable(const ModelState& model, const DesiredVersion& one) {
  const Servable* const servable = model.Find(one.key.revision, one.key.version);
  return servable != nullptr && servable->Available();
}

// What the active configuration would want of what the staged one has found.
bool DesiredAsBefore(const ModelState& model, int64_t version) {
  return DesiredOf(model.current->configuration, model.staged->found, model.attempts)
             .Find(version) != nullptr;
}

}  // namespace

void SetCurrent(ModelState* model, std::shared_ptr<const ModelConfig> config,
                const CpuShares& cpu_shares) {
  model->current.emplace().configuration = {std::move(config), cpu_shares, NextId()};
}

bool Keep(ModelState* model, const std::shared_ptr<const ModelConfig>& config,
          const CpuShares& cpu_shares) {
  if (!model->current || !model->current->watched.all || !model->attempts.empty() ||
      !(model->current->config() == *config))
    return false;
  model->kept = Configuration{config, cpu_shares, model->current_revision()};
  return true;
}

void Stage(ModelState* model, std::shared_ptr<const ModelConfig> config,
           const CpuShares& cpu_shares) {
  ++model->reloads;
  const bool alike = model->current && LoadAlike(model->current->config(), *config);
  Target& staged = model->staged.emplace();
  staged.configuration = {std::move(config), cpu_shares,
                          alike ? model->current_revision() : NextId(), true};
  if (!alike) return;
  // Loaded versions are not scanned again, and what is known of them is needed once they are gone.
  staged.found.versions = model->current->found.versions;
  staged.watched = model->current->watched;  // of the same base_path
  for (auto& [key, attempt] : model->attempts) {
    if (!MayRetryLoad(key, attempt)) continue;
    attempt.failures = 1;  // not 0: nothing is taken away for it yet
    attempt.retry_at = TimePoint::min();
  }
}

void Commit(ModelState* model) {
  if (model->kept) {
    model->current->configuration = *std::exchange(model->kept, {});
    return;
  }
  if (!model->staged) {
    model->current.reset();
    model->ended.clear();
    return;
  }
  model->staged->configuration.staged = false;
  // A scan that failed, or has not ended, tells nothing against what is known of the same place.
  if (SameConfig(*model) && !model->staged->found.fresh) {
    model->current->configuration = model->staged->configuration;
  } else {
    model->current = std::move(model->staged);
  }
  model->staged.reset();
}

absl::StatusOr<StagedProgress> ProgressOfStaged(const ModelState& model, bool wait_for_scans) {
  const Target& staged = *model.staged;
  const bool same_config = SameConfig(model);
  if (!staged.found.scanned)
    return same_config && !wait_for_scans ? StagedProgress::kReady : StagedProgress::kWaiting;
  if (staged.failed_scans) {
    if (same_config) return StagedProgress::kReady;
    return Annotate(staged.scan_error(), absl::StrCat("model '", model.name, "'"));
  }
  const Desired desired = DesiredOf(staged.configuration, staged.found, model.attempts);
  StagedProgress progress = StagedProgress::kReady;
  // Of a model that stays as it is, versions still being copied come with a later scan.
  if (!same_config && !desired.incomplete.empty()) progress = StagedProgress::kWaiting;
  for (const DesiredVersion& one : desired.versions) {
    if (IsAvailable(model, one) || (one.failed && MayStayFailed(model, one))) continue;
    if (one.failed && !Retries(model, one))
      return Annotate(one.failed->error,
                      absl::StrCat("model '", model.name, "' version ", one.key.version));
    progress = StagedProgress::kWaiting;
  }
  return progress;
}

std::string StagedWaitsFor(const ModelState& model) {
  const Target& staged = *model.staged;
  if (!staged.found.scanned)
    return absl::StrCat("'", staged.config().base_path, "' is being scanned");
  const Desired desired = DesiredOf(staged.configuration, staged.found, model.attempts);
  if (!SameConfig(model) && !desired.incomplete.empty())
    return absl::StrCat("files of version ", desired.incomplete[0], " keep changing");
  for (const DesiredVersion& one : desired.versions)
    if (!IsAvailable(model, one))
      return absl::StrCat("version ", one.key.version, " is being loaded");
  return "a version of it has not been found yet";
}

bool WillBeAvailable(const ModelState& model, int64_t version) {
  const Servable* one = model.Find(model.staged->revision(), version);
  if (one == nullptr || !one->Available()) return false;
  Configuration active = model.staged->configuration;
  active.staged = false;
  return DesiredOf(active, model.staged->found, model.attempts).Wants(*one);
}

bool WillBeDropped(const ModelState& model, int64_t version) {
  const Servable* one = model.current ? model.Find(model.current_revision(), version) : nullptr;
  if (one == nullptr || !one->published || WillBeAvailable(model, version)) return false;
  return model.staged->revision() != model.current_revision() || DesiredAsBefore(model, version);
}

}  // namespace floe::server
