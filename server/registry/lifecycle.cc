#include "server/registry/lifecycle.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/describe_changes.h"
#include "server/registry/probe_model.h"
#include "server/registry/version_labels.h"

namespace floe::server {
namespace {

// A reload waits so long for looks at models that stay as they are: they are to bring new versions,
// but storage that hangs is not to keep other models from being changed.
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

Lifecycle::Lifecycle(const std::vector<ModelConfig>& models, Options options) : options_(options) {
  config_.models = models;
  const CpuShares weights = WeightsOf(models);
  for (const ModelConfig& model : models)
    EntryOf(model.name).SetCurrent(std::make_shared<const ModelConfig>(model), weights);
}

ModelEntry* Lifecycle::Find(const std::string& name) {
  const auto it = models_.find(name);
  return it == models_.end() ? nullptr : it->second.get();
}

ModelEntry& Lifecycle::EntryOf(const std::string& name) {
  std::unique_ptr<ModelEntry>& entry = models_[name];
  if (entry == nullptr) entry = std::make_unique<ModelEntry>(name, &next_id_);
  return *entry;
}

void Lifecycle::Scanned(const std::string& model, int64_t ticket,
                        const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now) {
  for (auto it = scanning_.begin(); it != scanning_.end();)
    it = it->second == ticket ? scanning_.erase(it) : std::next(it);
  if (ModelEntry* entry = Find(model))
    changed_ |= entry->Scanned(ticket, found, now, options_.times);
}

void Lifecycle::Loaded(const std::string& model, ServableId id, const absl::Status& status,
                       TimePoint now, const std::optional<FileIdentity>& identity) {
  if (ModelEntry* entry = Find(model)) entry->Loaded(id, status, now, options_.times, identity);
  changed_ = true;
}

void Lifecycle::Unloaded(const std::string& model, ServableId id, const absl::Status& status) {
  if (ModelEntry* entry = Find(model)) entry->Unloaded(id, status);
  for (auto& [name, entry] : models_) entry->RetryRefused();
  changed_ = true;
}

Actions Lifecycle::Step(TimePoint now, std::vector<Ended>* ended) {
  Actions actions;
  do {
    for (auto& [name, entry] : models_) entry->Step(now, &actions);
  } while (AdvanceReload(now, ended));
  PutOffScans(&actions);
  for (auto it = models_.begin(); it != models_.end();)
    it = it->second->Empty() ? models_.erase(it) : std::next(it);
  changed_ |= !actions.loads.empty() || !actions.unloads.empty() || !ended->empty();
  for (const auto& reload : reloads_)
    actions.next = std::min(actions.next, reload->wanted.deadline);
  if (reloading_ && now < scans_until_) actions.next = std::min(actions.next, scans_until_);
  return actions;
}

// A place is looked at once at a time, lest one that hangs take all threads there are for it. Those
// that have waited longest come first.
void Lifecycle::PutOffScans(Actions* actions) {
  std::stable_sort(actions->scans.begin(), actions->scans.end(),
                   [](const ScanAction& a, const ScanAction& b) { return a.due < b.due; });
  std::vector<ScanAction> now;
  for (ScanAction& scan : actions->scans) {
    if (scanning_.emplace(scan.base_path, scan.ticket).second) {
      now.push_back(std::move(scan));
    } else if (ModelEntry* entry = Find(scan.model)) {
      entry->PutOffScan(scan.ticket);
    }
  }
  actions->scans = std::move(now);
}

bool Lifecycle::Settled() const {
  return std::all_of(models_.begin(), models_.end(),
                     [](const auto& named) { return named.second->Settled(); });
}

// Of those that have not begun.
void Lifecycle::EndLateReloads(TimePoint now, std::vector<Ended>* ended) {
  for (auto it = reloads_.begin() + (reloading_ ? 1 : 0); it != reloads_.end();) {
    Transaction& reload = **it;
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
    it = reloads_.erase(it);
  }
}

// True when the entries have something new to decide.
bool Lifecycle::AdvanceReload(TimePoint now, std::vector<Ended>* ended) {
  EndLateReloads(now, ended);
  if (reloads_.empty()) return false;
  if (reloading_stopped_) {
    Finish(absl::UnavailableError("the server is stopping"), ended);
    return true;
  }
  if (reloads_.front()->cancelled()) {
    Finish(CallerLeft(Unfinished(now)), ended);
    return true;
  }
  if (!reloading_) {
    reloading_ = true;
    if (const absl::Status status = Begin(now); !status.ok()) Finish(status, ended);
    return true;
  }
  auto progress = Progress(now);
  if (progress.ok() && *progress == ModelEntry::Progress::kReady) {
    const absl::Status labels = CheckStagedLabels();
    std::string changes;
    if (labels.ok()) {
      changes = DescribeChanges(config_.models, reloads_.front()->wanted.models);
      Commit();
    }
    Finish(labels, ended);
    ended->back().changes = std::move(changes);
    return true;
  }
  if (progress.ok() && now >= reloads_.front()->wanted.deadline)
    progress = absl::DeadlineExceededError(
        absl::StrCat("the deadline passed before all was loaded", Unfinished(now)));
  if (progress.ok()) return false;
  Finish(progress.status(), ended);
  return true;
}

// No other configuration becomes active between this and the commit: the generation that is
// right here is right there.
absl::Status Lifecycle::Begin(TimePoint now) {
  const ReloadRequest& reload = reloads_.front()->wanted;
  scans_until_ = std::min(reload.deadline, now + kScanTimeout);
  if (reload.replaces) FLOE_RETURN_IF_ERROR(CheckGeneration(*reload.replaces, config_.generation));
  const std::vector<ModelConfig>& wanted = reload.models;
  FLOE_RETURN_IF_ERROR(CheckModels(wanted));
  const CpuShares weights = WeightsOf(wanted);
  for (const ModelConfig& model : wanted)
    EntryOf(model.name).Stage(std::make_shared<const ModelConfig>(model), weights);
  return absl::OkStatus();
}

// Of all staged models together: an error first.
absl::StatusOr<ModelEntry::Progress> Lifecycle::Progress(TimePoint now) const {
  bool waiting = false;
  for (const auto& [name, entry] : models_) {
    if (!entry->staged()) continue;
    FLOE_ASSIGN_OR_RETURN(const ModelEntry::Progress progress,
                          entry->StagedProgress(now < scans_until_));
    waiting |= progress == ModelEntry::Progress::kWaiting;
  }
  return waiting ? ModelEntry::Progress::kWaiting : ModelEntry::Progress::kReady;
}

absl::Status Lifecycle::CheckStagedLabels() const {
  for (const auto& named : models_) {
    const ModelEntry& entry = *named.second;
    if (!entry.staged()) continue;
    const VersionLabels none;
    const VersionFate fate = {[&](int64_t version) { return entry.WillBeAvailable(version); },
                              [&](int64_t version) { return entry.WillBeDropped(version); }};
    FLOE_RETURN_IF_ERROR(CheckLabels(
        entry.name(), entry.current() ? entry.current()->config->version_labels : none,
        entry.staged()->config->version_labels, fate, options_.allow_labels_for_unavailable));
  }
  return absl::OkStatus();
}

// ": model 'm': what it waits for" of every staged model that is not ready.
std::string Lifecycle::Unfinished(TimePoint now) const {
  std::vector<std::string> reasons;
  for (const auto& [name, entry] : models_) {
    if (!entry->staged()) continue;
    const auto progress = entry->StagedProgress(now < scans_until_);
    if (!progress.ok())
      reasons.push_back(std::string(progress.status().message()));
    else if (*progress != ModelEntry::Progress::kReady)
      reasons.push_back(absl::StrCat("model '", name, "': ", entry->StagedWaitsFor()));
  }
  return absl::StrCat(reasons.empty() ? "" : ": ", absl::StrJoin(reasons, "; "));
}

void Lifecycle::Commit() {
  for (auto& [name, entry] : models_) {
    if (entry->staged()) {
      entry->Commit();
    } else {
      entry->Remove();
    }
  }
  config_.models = reloads_.front()->wanted.models;
  ++config_.generation;
}

void Lifecycle::Finish(const absl::Status& status, std::vector<Ended>* ended) {
  for (auto& [name, entry] : models_) entry->Abandon();
  config_.last_error = Annotate(status, kNotChanged);
  ended->push_back({reloads_.front(), config_.last_error, ""});
  reloads_.pop_front();
  reloading_ = false;
}

}  // namespace floe::server
