#include "server/registry/staging.h"

#include <algorithm>
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

// Versions that the active configuration came upon by itself are now named one by one: whoever
// does so means each of them.
bool NewlyNamed(const ModelState& model) {
  constexpr auto kSpecific = VersionPolicy::Kind::kSpecific;
  return model.staged->config->versions.kind == kSpecific &&
         (!model.current || model.current->config->versions.kind != kSpecific);
}

// A version that failed before this reload does not hold it up. Where something changes, a label
// say, it is waited for while it is retried.
bool MayStayFailed(const ModelState& model, const Servable& one) {
  if (!one.attempt->failed_before || NewlyNamed(model)) return false;
  return model.same_config || !one.attempt->retrying;
}

}  // namespace

void SetCurrent(ModelState* model, std::shared_ptr<const ModelConfig> config,
                const CpuShares& weights) {
  Target& current = model->current.emplace();
  current.revision = (*model->next_id)++;
  current.config = std::move(config);
  current.weights = weights;
}

void Stage(ModelState* model, std::shared_ptr<const ModelConfig> config, const CpuShares& weights) {
  const bool alike = model->current && LoadAlike(*model->current->config, *config);
  model->same_config = model->current && *model->current->config == *config;
  Target& staged = model->staged.emplace();
  staged.revision = alike ? model->current->revision : (*model->next_id)++;
  staged.config = std::move(config);
  staged.weights = weights;
  // Loaded versions are not looked at again, and what is known of them is needed once they are
  // gone.
  if (alike) staged.found = model->current->found;
  for (Servable& one : model->servables) {
    if (one.key.revision != staged.revision || !one.Failing()) continue;
    one.attempt->failed_before = true;
    if (!one.MayRetryLoad()) continue;
    one.attempt->retrying = true;
    if (one.state == VersionState::kLoading) continue;
    one.state = VersionState::kStart;
    one.attempt->failures = 1;  // not 0: nothing is taken away for it yet
    one.attempt->retry_at = TimePoint::min();
  }
}

void Commit(ModelState* model) {
  Target& staged = *model->staged;
  if (staged.revision != model->current_revision())
    model->ForgetAttempts([](const AttemptKey&) { return false; });
  // A scan that failed, or has not ended, tells nothing against what is known of the same place.
  if (model->same_config && (!staged.scanned || !staged.scan_error.ok())) {
    model->current->config = staged.config;
    model->current->weights = staged.weights;
  } else {
    model->current = std::move(model->staged);
  }
  Abandon(model);
}

void Abandon(ModelState* model) {
  model->staged.reset();
  model->same_config = false;
  for (auto& [key, attempt] : model->attempts) attempt->failed_before = false;
}

void Remove(ModelState* model) {
  model->current.reset();
  model->ended.clear();
  model->ForgetAttempts([](const AttemptKey&) { return false; });
}

absl::StatusOr<StagedProgress> ProgressOfStaged(const ModelState& model, bool patient) {
  const Target& staged = *model.staged;
  if (!staged.scanned)
    return model.same_config && !patient ? StagedProgress::kReady : StagedProgress::kWaiting;
  if (!staged.scan_error.ok()) {
    if (model.same_config) return StagedProgress::kReady;
    return Annotate(staged.scan_error, absl::StrCat("model '", model.name, "'"));
  }
  StagedProgress progress = StagedProgress::kReady;
  // Of a model that stays as it is, versions still being copied come with a later scan.
  if (!model.same_config && !IncompleteVersions(model, staged).empty())
    progress = StagedProgress::kWaiting;
  for (const int64_t version : DesiredVersions(model, staged, Scope::kStrict)) {
    const Servable* one = model.Find(staged.revision, version);
    if (one != nullptr && (one->Available() || MayStayFailed(model, *one))) continue;
    if (one != nullptr && one->Failing() && !one->attempt->retrying)
      return Annotate(one->attempt->error,
                      absl::StrCat("model '", model.name, "' version ", version));
    progress = StagedProgress::kWaiting;
  }
  return progress;
}

std::string StagedWaitsFor(const ModelState& model) {
  const Target& staged = *model.staged;
  if (!staged.scanned) return absl::StrCat("'", staged.config->base_path, "' is looked through");
  if (const auto incomplete = IncompleteVersions(model, staged);
      !model.same_config && !incomplete.empty())
    return absl::StrCat("files of version ", incomplete[0], " keep changing");
  const Desired desired = DesiredOf(model);
  for (const Servable& one : model.servables)
    if (desired.ByStaged(one) && !one.Available())
      return absl::StrCat("version ", one.version(), " is being loaded");
  return "a version of it has not been found yet";
}

bool WillBeAvailable(const ModelState& model, int64_t version) {
  const Servable* one = model.Find(model.staged->revision, version);
  if (one == nullptr || !one->Available()) return false;
  const std::vector<int64_t> desired = DesiredVersions(model, *model.staged, Scope::kActive);
  return std::find(desired.begin(), desired.end(), version) != desired.end();
}

bool WillBeDropped(const ModelState& model, int64_t version) {
  const Servable* one = model.current ? model.Find(model.current->revision, version) : nullptr;
  if (one == nullptr || !one->published || WillBeAvailable(model, version)) return false;
  return model.staged->revision != model.current_revision() || DesiredAsBefore(model, version);
}

}  // namespace floe::server
