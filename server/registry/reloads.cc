// The queue of reloads: one after the other is staged in all models, and committed or dropped as a
// whole.
#include "server/registry/reloads.h"

#include <algorithm>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/describe_changes.h"
#include "server/registry/probe_model.h"
#include "server/registry/version_labels.h"

namespace floe::server {
namespace {

// A reload waits so long for scans of models that stay as they are. They may bring new versions,
// but storage that hangs must not keep other models from being changed.
constexpr Duration kScanTimeout = std::chrono::seconds(5);

constexpr char kNotChanged[] = "the configuration was not changed";

absl::Status CallerLeft(const std::string& unfinished) {
  return absl::CancelledError(absl::StrCat("the caller left before all was loaded", unfinished));
}

}  // namespace

absl::Status CheckModels(const std::vector<ModelConfig>& models) {
  ServerConfig config;
  config.models = models;
  FLOE_RETURN_IF_ERROR(ValidateConfig(config));
  std::vector<std::string> errors;
  for (const ModelConfig& model : models) {
    const VersionPolicy& policy = model.versions;
    if (model.name == kProbeModel)
      errors.push_back(absl::StrCat("model name '", kProbeModel, "' is the server's own"));
    if (policy.kind == VersionPolicy::Kind::kLatest && policy.latest < 1)
      errors.push_back(absl::StrCat("model '", model.name, "': the latest ", policy.latest,
                                    " versions are none; ask for 1 or more"));
    if (policy.kind == VersionPolicy::Kind::kSpecific && policy.specific.empty())
      errors.push_back(absl::StrCat("model '", model.name,
                                    "': specific versions without a number; name at least one"));
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  return absl::OkStatus();
}

absl::Status CheckGeneration(int64_t expected, int64_t active) {
  if (expected == active) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the active configuration has generation ", active,
                                         ", not ", expected,
                                         "; look at it again before replacing it"));
}

void ConfigState::Note(ConfigChange change) {
  if (changes.size() == kMostChanges) changes.erase(changes.begin());
  changes.push_back(std::move(change));
}

ModelState& ModelNamed(const std::string& name, ModelStates* models) {
  ModelState& model = (*models)[name];
  model.name = name;
  return model;
}

absl::Status ModelRegistry::Reload(ReloadRequest request) {
  std::promise<absl::Status> ended;
  StartReload(std::move(request), [&](const absl::Status& status) { ended.set_value(status); });
  return ended.get_future().get();
}

void Transaction::End(const absl::Status& outcome) {
  const ReloadDone done = std::exchange(done_, nullptr);
  if (done == nullptr) return;
  if (wanted.cancel != nullptr) wanted.cancel->ClearListener(this);
  done(outcome);
}

void Reloads::Add(std::shared_ptr<Transaction> wanted) {
  if (queue_.size() <= kMostWaiting) return queue_.push_back(std::move(wanted));
  wanted->End(absl::ResourceExhaustedError(
      absl::StrCat(kMostWaiting, " reloads wait already; try again when they are through")));
}

TimePoint Reloads::Next(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& reload : queue_) next = std::min(next, reload->wanted.deadline);
  return begun_ && now < scans_until_ ? std::min(next, scans_until_) : next;
}

// Of those that have not begun.
void Reloads::EndLate(TimePoint now, std::vector<Ended>* ended) {
  for (auto it = queue_.begin() + (begun_ ? 1 : 0); it != queue_.end();) {
    const Transaction& reload = **it;
    if (now < reload.wanted.deadline && !reload.cancelled()) {
      ++it;
      continue;
    }
    const absl::Status status =
        reload.cancelled()
            ? CallerLeft("")
            : absl::DeadlineExceededError("the deadline passed before its turn came");
    config_.last_error = Annotate(status, kNotChanged);
    ended->push_back({*it, config_.last_error, ""});
    it = queue_.erase(it);
  }
}

bool Reloads::Advance(TimePoint now, std::vector<Ended>* ended) {
  EndLate(now, ended);
  if (!begun_) touched_.clear();
  if (queue_.empty()) return false;
  if (stopped_) {
    Finish(absl::UnavailableError("the server is stopping"), ended);
    return true;
  }
  if (queue_.front()->cancelled()) {
    Finish(CallerLeft(Unfinished(now)), ended);
    return true;
  }
  if (!begun_) {
    begun_ = true;
    if (const absl::Status status = Begin(now); !status.ok()) Finish(status, ended);
    return true;
  }
  auto progress = Progress(now);
  if (progress.ok() && *progress == StagedProgress::kReady) {
    const absl::Status labels = CheckStagedLabels();
    std::string changes;
    if (labels.ok()) {
      changes = DescribeChanges(config_.models, queue_.front()->wanted.models);
      CommitAll();
    }
    Finish(labels, ended);
    ended->back().changes = std::move(changes);
    return true;
  }
  if (progress.ok() && now >= queue_.front()->wanted.deadline)
    progress = absl::DeadlineExceededError(
        absl::StrCat("the deadline passed before all was loaded", Unfinished(now)));
  if (progress.ok()) return false;
  Finish(progress.status(), ended);
  return true;
}

// No other configuration becomes active between this and the commit: the generation that is
// right here is right there.
absl::Status Reloads::Begin(TimePoint now) {
  const ReloadRequest& reload = queue_.front()->wanted;
  scans_until_ = std::min(reload.deadline, now + kScanTimeout);
  involved_.clear();
  if (reload.replaces) FLOE_RETURN_IF_ERROR(CheckGeneration(*reload.replaces, config_.generation));
  FLOE_RETURN_IF_ERROR(CheckModels(reload.models));
  const CpuShares cpu_shares = CpuSharesOf(reload.models);
  for (const ModelConfig& wanted : reload.models) {
    ModelState* const model = &ModelNamed(wanted.name, &models_);
    const auto config = std::make_shared<const ModelConfig>(wanted);
    if (Keep(model, config, cpu_shares)) continue;
    Stage(model, config, cpu_shares);
    unready_.insert(wanted.name);
  }
  for (const auto& [name, model] : models_)
    if (!model.kept) involved_.insert(name);
  waits_for_scans_ = true;
  return absl::OkStatus();
}

// Of all staged models together: an error first.
absl::StatusOr<StagedProgress> Reloads::Progress(TimePoint now) {
  if (waits_for_scans_ && now >= scans_until_) {
    waits_for_scans_ = false;
    touched_.insert(unready_.begin(), unready_.end());
  }
  for (const std::string& name : std::exchange(touched_, {})) {
    const auto model = models_.find(name);
    if (model == models_.end() || !model->second.staged) continue;
    FLOE_ASSIGN_OR_RETURN(const StagedProgress progress,
                          ProgressOfStaged(model->second, waits_for_scans_));
    if (progress == StagedProgress::kReady) {
      unready_.erase(name);
    } else {
      unready_.insert(name);
    }
  }
  return unready_.empty() ? StagedProgress::kReady : StagedProgress::kWaiting;
}

absl::Status Reloads::CheckStagedLabels() const {
  const VersionLabels none;
  for (const auto& named : models_) {
    const ModelState& model = named.second;
    if (!model.staged) continue;
    const VersionFate fate = {[&](int64_t version) { return WillBeAvailable(model, version); },
                              [&](int64_t version) { return WillBeDropped(model, version); }};
    FLOE_RETURN_IF_ERROR(CheckLabels(model.name,
                                     model.current ? model.current->config().version_labels : none,
                                     model.staged->config().version_labels, fate, allow_labels_));
  }
  return absl::OkStatus();
}

// ": model 'm': what it waits for" of every staged model that is not ready.
std::string Reloads::Unfinished(TimePoint now) const {
  std::vector<std::string> reasons;
  for (const auto& [name, model] : models_) {
    if (!model.staged) continue;
    const auto progress = ProgressOfStaged(model, now < scans_until_);
    if (!progress.ok())
      reasons.push_back(std::string(progress.status().message()));
    else if (*progress != StagedProgress::kReady)
      reasons.push_back(absl::StrCat("model '", name, "': ", StagedWaitsFor(model)));
  }
  return absl::StrCat(reasons.empty() ? "" : ": ", absl::StrJoin(reasons, "; "));
}

void Reloads::CommitAll() {
  for (auto& [name, model] : models_) Commit(&model);
  config_.models = queue_.front()->wanted.models;
  ++config_.generation;
}

void Reloads::Finish(const absl::Status& status, std::vector<Ended>* ended) {
  for (auto& [name, model] : models_) {
    model.staged.reset();
    model.kept.reset();
  }
  unready_.clear();
  config_.last_error = Annotate(status, kNotChanged);
  ended->push_back({queue_.front(), config_.last_error, ""});
  queue_.pop_front();
  begun_ = false;
}

}  // namespace floe::server
