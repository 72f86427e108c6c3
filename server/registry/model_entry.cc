#include "server/registry/model_entry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "server/registry/version_policy.h"

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

// Takes memory, or is about to.
bool IsThere(const Servable& servable) {
  return servable.state == VersionState::kLoading || servable.state == VersionState::kAvailable ||
         servable.state == VersionState::kUnloading;
}

bool IsLoaded(const Servable& servable) {
  return servable.state == VersionState::kLoading || servable.state == VersionState::kAvailable;
}

bool Names(const std::vector<int64_t>& versions, int64_t version) {
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

// The load may end differently when it is done once more.
bool MayRetryLoad(const Servable& servable) {
  return !servable.file.empty() && MayRetry(servable.error);
}

// Files that have been left alone so long are complete at the first scan. The host of the files may
// have another idea of the time; it should not be further away than this.
constexpr Duration kClockSkew = std::chrono::minutes(1);

absl::Status NotThere(const Target& target, int64_t version) {
  std::vector<int64_t> found;
  for (const Target::Seen& seen : target.found) found.push_back(seen.files.version);
  return absl::NotFoundError(
      absl::StrCat("there is no version ", version, " under '", target.config->base_path,
                   "'; it holds ", found.empty() ? "none" : absl::StrJoin(found, ", "),
                   "; copy the version there, or take it from the specific versions of the model"));
}

}  // namespace

const Target::Seen* Target::Find(int64_t version) const {
  for (const Seen& seen : found)
    if (seen.files.version == version) return &seen;
  return nullptr;
}

const Servable* ModelEntry::Find(int64_t revision, int64_t version) const {
  for (const Servable& servable : servables_)
    if (servable.revision == revision && servable.version == version &&
        servable.state != VersionState::kUnloading)
      return &servable;
  return nullptr;
}

Servable* ModelEntry::Find(int64_t revision, int64_t version) {
  return const_cast<Servable*>(std::as_const(*this).Find(revision, version));
}

std::vector<int64_t> ModelEntry::Wanted(const Target& target, Scope scope) const {
  std::vector<int64_t> found;
  std::set<int64_t> failing;
  for (const Target::Seen& seen : target.found) {
    const int64_t version = seen.files.version;
    const Servable* servable = Find(target.revision, version);
    const bool loaded = servable != nullptr && IsLoaded(*servable);
    if (scope == Scope::kExpected || seen.settled || loaded) found.push_back(version);
    const bool known =
        scope == Scope::kActive || (scope == Scope::kStaged && failed_before_.count(version) != 0);
    if (known && servable != nullptr && servable->failures > 0) failing.insert(version);
  }
  std::vector<int64_t> wanted =
      WantedVersions(target.config->versions, found, failing, LabelledVersions(*target.config));
  // `specific` names versions that are gone, too: an error to load, and no reason to keep.
  const auto gone = [&](int64_t version) {
    const Servable* servable = Find(target.revision, version);
    return target.Find(version) == nullptr && servable != nullptr && IsLoaded(*servable);
  };
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(), gone), wanted.end());
  return wanted;
}

// Versions that the active configuration came upon by itself are now named one by one: whoever
// does so means each of them.
bool ModelEntry::NewlyNamed() const {
  constexpr auto kSpecific = VersionPolicy::Kind::kSpecific;
  return staged_->config->versions.kind == kSpecific &&
         (!current_ || current_->config->versions.kind != kSpecific);
}

// Whether the active configuration would want it, too, of what the staged one has found.
bool ModelEntry::WantedAsBefore(int64_t version) const {
  Target before = *staged_;
  before.config = current_->config;
  return Names(Wanted(before, Scope::kActive), version);
}

void ModelEntry::UpdateWanted() {
  wanted_by_current_.clear();
  wanted_by_staged_.clear();
  if (current_)
    for (const int64_t version : Wanted(*current_, Scope::kActive))
      wanted_by_current_.insert(version);
  if (staged_)
    for (const int64_t version : Wanted(*staged_, Scope::kStaged))
      wanted_by_staged_.insert(version);
}

bool ModelEntry::WantedByCurrent(const Servable& servable) const {
  return current_ && servable.revision == current_->revision &&
         wanted_by_current_.count(servable.version) != 0;
}

bool ModelEntry::WantedByStaged(const Servable& servable) const {
  return staged_ && servable.revision == staged_->revision &&
         wanted_by_staged_.count(servable.version) != 0;
}

bool ModelEntry::IsWanted(const Servable& servable) const {
  return WantedByStaged(servable) || WantedByCurrent(servable);
}

std::vector<int64_t> ModelEntry::Incomplete(const Target& target) const {
  std::vector<int64_t> incomplete;
  for (const int64_t version : Wanted(target, Scope::kExpected)) {
    const Target::Seen* seen = target.Find(version);
    const Servable* servable = Find(target.revision, version);
    if (seen != nullptr && !seen->settled && (servable == nullptr || !IsLoaded(*servable)))
      incomplete.push_back(version);
  }
  return incomplete;
}

// ---- configurations ----

void ModelEntry::SetCurrent(std::shared_ptr<const ModelConfig> config, const CpuShares& weights) {
  current_.emplace();
  current_->revision = (*next_id_)++;
  current_->config = std::move(config);
  current_->weights = weights;
  UpdateWanted();
}

void ModelEntry::Stage(std::shared_ptr<const ModelConfig> config, const CpuShares& weights) {
  const bool alike = current_ && LoadAlike(*current_->config, *config);
  same_config_ = current_ && *current_->config == *config;
  staged_.emplace();
  staged_->revision = alike ? current_->revision : (*next_id_)++;
  staged_->config = std::move(config);
  staged_->weights = weights;
  // Loaded versions are not looked at again, and what is known of them is needed once they are
  // gone.
  if (alike) staged_->found = current_->found;
  failed_before_.clear();
  for (Servable& servable : servables_) {
    if (servable.revision != staged_->revision || servable.failures == 0) continue;
    failed_before_.insert(servable.version);
    if (!MayRetryLoad(servable)) continue;
    servable.retrying = true;
    if (servable.state == VersionState::kLoading) continue;
    servable.state = VersionState::kStart;
    servable.failures = 1;  // not 0: nothing is taken away for it yet
    servable.retry_at = TimePoint::min();
  }
  UpdateWanted();
}

void ModelEntry::Commit() {
  if (staged_->revision != current_revision()) failed_attempts_.clear();
  // A scan that failed, or has not ended, tells nothing against what is known of the same place.
  if (same_config_ && (!staged_->scanned || !staged_->scan_error.ok())) {
    current_->config = staged_->config;
    current_->weights = staged_->weights;
  } else {
    current_ = std::move(staged_);
  }
  Abandon();
}

void ModelEntry::Abandon() {
  staged_.reset();
  same_config_ = false;
  failed_before_.clear();
  UpdateWanted();
}

void ModelEntry::Remove() {
  current_.reset();
  failed_attempts_.clear();
  ended_.clear();
  UpdateWanted();
}

absl::StatusOr<ModelEntry::Progress> ModelEntry::StagedProgress(bool patient) const {
  if (!staged_->scanned) return same_config_ && !patient ? Progress::kReady : Progress::kWaiting;
  if (!staged_->scan_error.ok()) {
    if (same_config_) return Progress::kReady;
    return Annotate(staged_->scan_error, absl::StrCat("model '", name_, "'"));
  }
  Progress progress = Progress::kReady;
  // Of a model that stays as it is, versions still being copied come with a later scan.
  if (!same_config_ && !Incomplete(*staged_).empty()) progress = Progress::kWaiting;
  for (const int64_t version : Wanted(*staged_, Scope::kStrict)) {
    const Servable* servable = Find(staged_->revision, version);
    if (servable != nullptr && servable->state == VersionState::kAvailable) continue;
    if (failed_before_.count(version) != 0 && !NewlyNamed()) {
      // Where something changes, a label say, it is waited for while it is retried.
      const bool tried = servable == nullptr || servable->retrying;
      if (same_config_ || !tried) continue;
    }
    if (servable != nullptr && servable->failures > 0 && !servable->retrying)
      return Annotate(servable->error, absl::StrCat("model '", name_, "' version ", version));
    progress = Progress::kWaiting;
  }
  return progress;
}

std::string ModelEntry::StagedWaitsFor() const {
  if (!staged_->scanned)
    return absl::StrCat("'", staged_->config->base_path, "' is looked through");
  if (const auto incomplete = Incomplete(*staged_); !same_config_ && !incomplete.empty())
    return absl::StrCat("files of version ", incomplete[0], " keep changing");
  for (const Servable& servable : servables_)
    if (WantedByStaged(servable) && servable.state != VersionState::kAvailable)
      return absl::StrCat("version ", servable.version, " is being loaded");
  return "a version of it has not been found yet";
}

bool ModelEntry::WillBeAvailable(int64_t version) const {
  const Servable* servable = Find(staged_->revision, version);
  return servable != nullptr && servable->state == VersionState::kAvailable &&
         Names(Wanted(*staged_, Scope::kActive), version);
}

bool ModelEntry::WillBeDropped(int64_t version) const {
  const Servable* servable = current_ ? Find(current_->revision, version) : nullptr;
  if (servable == nullptr || !servable->published || WillBeAvailable(version)) return false;
  return staged_->revision != current_revision() || WantedAsBefore(version);
}

// ---- what happened ----

bool ModelEntry::Scanned(int64_t ticket, const absl::StatusOr<std::vector<FoundVersion>>& found,
                         TimePoint now, const LifecycleTimes& times) {
  Target* target = nullptr;
  for (std::optional<Target>* one : {&current_, &staged_})
    if (*one && (*one)->scan_ticket == ticket) target = &**one;
  if (target == nullptr) return false;
  const TimePoint next = times.poll > Duration::zero() ? now + times.poll : TimePoint::max();
  const bool gave_up = target->given_up;
  target->failed_scans = found.ok() ? 0 : target->failed_scans + 1;
  target->given_up =
      !found.ok() && (!MayRetry(found.status()) || absl::IsNotFound(found.status()) ||
                      absl::IsPermissionDenied(found.status()) ||
                      target->failed_scans > times.max_retries || times.poll <= Duration::zero());
  bool changed =
      !target->scanned || target->scan_error != found.status() || target->given_up != gave_up;
  target->scan_ticket = 0;
  target->scanned = true;
  target->next_scan = next;
  target->scan_error = found.status();
  if (!found.ok()) return changed;

  const Duration settle = times.Settle();
  std::vector<Target::Seen> seen;
  changed |= found->size() != target->found.size();
  for (const FoundVersion& files : *found) {
    const Target::Seen* before = target->Find(files.version);
    changed |= before == nullptr;
    if (!files.scanned) {
      changed |= Compare(*target, files);
      // What is known of the files of a loaded version is true of it; else it may be out of date.
      const Servable* servable = Find(target->revision, files.version);
      const bool loaded = servable != nullptr && IsLoaded(*servable);
      seen.push_back(before != nullptr && loaded ? *before : Target::Seen{files, now, true});
      continue;
    }
    const bool same = before != nullptr && before->files.stamp == files.stamp;
    const TimePoint since = same ? before->since : now;
    const bool settled = files.quiet >= kClockSkew || now - since >= settle;
    changed |= !same || before->settled != settled;
    if (!settled) target->next_scan = std::min(next, now + settle);
    seen.push_back({files, since, settled});
  }
  target->found = std::move(seen);
  for (auto it = failed_attempts_.begin(); it != failed_attempts_.end();) {
    const bool gone = target->revision == current_revision() && !target->Find(it->first);
    it = gone ? failed_attempts_.erase(it) : std::next(it);
  }
  UpdateWanted();
  return changed;
}

void ModelEntry::Loaded(ServableId id, const absl::Status& status, TimePoint now,
                        const LifecycleTimes& times, const std::optional<FileIdentity>& identity) {
  const auto it = std::find_if(servables_.begin(), servables_.end(),
                               [id](const Servable& one) { return one.id == id; });
  if (it == servables_.end() || it->state != VersionState::kLoading) return;
  it->identity = identity;
  it->overwritten = absl::OkStatus();
  EndLoad(it, status, now, times);
  UpdateWanted();
}

void ModelEntry::EndLoad(std::list<Servable>::iterator it, const absl::Status& status,
                         TimePoint now, const LifecycleTimes& times) {
  if (status.ok()) {
    it->state = VersionState::kAvailable;
    it->error = absl::OkStatus();
    it->failures = 0;
    it->retrying = false;
    failed_attempts_.erase(it->version);
    return;
  }
  if (!IsWanted(*it)) {
    if (!absl::IsCancelled(status)) {
      it->error = status;
      EndFailed(*it);
    }
    servables_.erase(it);
    return;
  }
  if (absl::IsCancelled(status)) {  // it was given up, and is wanted again
    it->state = VersionState::kStart;
    return;
  }
  it->error = status;
  it->retrying = false;
  ++it->failures;
  const bool again = WantedByCurrent(*it) && MayRetry(status) && it->failures <= times.max_retries;
  it->state = again ? VersionState::kStart : VersionState::kEnd;
  it->retry_at = now + times.retry;
}

void ModelEntry::Unloaded(ServableId id, const absl::Status& status) {
  const auto it = std::find_if(servables_.begin(), servables_.end(),
                               [id](const Servable& one) { return one.id == id; });
  if (it == servables_.end() || it->state != VersionState::kUnloading) return;
  const int64_t version = it->version;
  servables_.erase(it);
  End(version, status);
  UpdateWanted();
}

void ModelEntry::RetryRefused() {
  for (Servable& servable : servables_) {
    const bool waits =
        servable.state == VersionState::kStart || servable.state == VersionState::kEnd;
    if (!waits || !absl::IsResourceExhausted(servable.error) || !MayRetryLoad(servable)) continue;
    servable.state = VersionState::kStart;
    servable.retry_at = TimePoint::min();
  }
}

void ModelEntry::End(int64_t version, const absl::Status& error) {
  if (!current_) return;
  ended_.push_front({version, VersionState::kEnd, error});
  if (ended_.size() > kEndedKept) ended_.pop_back();
}

// Nobody wants it any more, but the next attempt may come upon the same files.
void ModelEntry::EndFailed(const Servable& servable) {
  End(servable.version, servable.error);
  if (servable.revision == current_revision())
    failed_attempts_[servable.version] = {servable.file, servable.stamp, servable.error};
}

// ---- what is to be done ----

void ModelEntry::Step(TimePoint now, Actions* actions) {
  if (current_) EnsureServables(&*current_, Scope::kActive);
  if (staged_) EnsureServables(&*staged_, Scope::kStrict);
  UpdateWanted();
  Prune();
  Publish();
  Withdraw(actions);
  StartLoads(now, actions);
  HandOutScan(&current_, now, actions);
  HandOutScan(&staged_, now, actions);
}

void ModelEntry::HandOutScan(std::optional<Target>* target, TimePoint now, Actions* actions) {
  if (!*target || (*target)->scan_ticket != 0) return;
  if (now < (*target)->next_scan) {
    actions->next = std::min(actions->next, (*target)->next_scan);
    return;
  }
  (*target)->scan_ticket = (*next_id_)++;
  actions->scans.push_back({name_, (*target)->scan_ticket, (*target)->config->base_path,
                            ToScan(**target), (*target)->next_scan});
}

// What Wanted skips, in any scope, is skipped here, so that all it names are looked at.
VersionsToScan ModelEntry::ToScan(const Target& target) const {
  VersionsToScan scan{target.config->versions};
  scan.marker = target.config->completion_marker;
  scan.labelled = LabelledVersions(*target.config);
  scan.empty = target.empty;
  for (const Target::Seen& seen : target.found)
    if (!seen.settled) scan.skipped.insert(seen.files.version);
  for (const Servable& servable : servables_) {
    if (servable.revision != target.revision) continue;
    if (IsLoaded(servable)) scan.known.insert(servable.version);
    if (servable.state == VersionState::kAvailable)
      scan.loaded_files[servable.version] = servable.file;
    if (servable.failures > 0) scan.skipped.insert(servable.version);
  }
  return scan;
}

void ModelEntry::PutOffScan(int64_t ticket) {
  for (std::optional<Target>* one : {&current_, &staged_})
    if (*one && (*one)->scan_ticket == ticket) (*one)->scan_ticket = 0;
}

void ModelEntry::EnsureServables(Target* target, Scope scope) {
  // A version that fails at once gives its place to the next older one.
  for (bool failed = true; failed;) {
    failed = false;
    for (const int64_t version : Wanted(*target, scope)) failed |= !EnsureServable(target, version);
  }
}

bool ModelEntry::EnsureServable(Target* target, int64_t version) {
  const Target::Seen* seen = target->Find(version);
  Servable* servable = Find(target->revision, version);
  if (servable != nullptr && IsThere(*servable)) return true;
  if (!target->scanned || (seen == nullptr && !target->scan_error.ok())) return true;
  if (seen != nullptr && !seen->files.scanned) {
    // It was not wanted when its place was looked at. A place that cannot be looked at has its
    // time.
    if (target->scan_error.ok()) target->next_scan = TimePoint::min();
    return true;
  }
  if (seen != nullptr && !seen->settled) return true;
  const uint64_t stamp = seen == nullptr ? 0 : seen->files.stamp;
  const std::string file = seen == nullptr ? "" : seen->files.file;
  if (servable != nullptr && servable->stamp == stamp && servable->file == file) return true;
  if (servable == nullptr) {
    servable = &servables_.emplace_back();
    servable->id = (*next_id_)++;
    servable->revision = target->revision;
    servable->version = version;
    servable->config = target->config;
  } else {
    failed_before_.erase(version);  // other files: another attempt
  }
  servable->stamp = stamp;
  servable->file = file;
  servable->error = seen == nullptr ? NotThere(*target, version) : seen->files.error;
  servable->failures = servable->error.ok() ? 0 : 1;
  servable->state = servable->error.ok() ? VersionState::kStart : VersionState::kEnd;
  servable->retrying = false;
  servable->retry_at = TimePoint::min();
  if (staged_ && target == &*staged_) RecallAttempt(servable);
  return servable->error.ok();
}

// An attempt has failed with these files; had there been no other reason for it, the configuration
// active would have found that out. What it would not ask for is tried as if it were new.
void ModelEntry::RecallAttempt(Servable* servable) {
  const auto it = failed_attempts_.find(servable->version);
  if (it == failed_attempts_.end() || it->second.file != servable->file ||
      it->second.stamp != servable->stamp || servable->revision != current_revision() ||
      !WantedAsBefore(servable->version))
    return;
  failed_before_.insert(servable->version);
  servable->error = it->second.error;
  servable->failures = 1;
  servable->retrying = MayRetryLoad(*servable);
  servable->state = servable->retrying ? VersionState::kStart : VersionState::kEnd;
}

// Drops what never came to be and is wanted no more.
void ModelEntry::Prune() {
  for (auto it = servables_.begin(); it != servables_.end();) {
    const bool wanted = IsWanted(*it);
    if (it->state == VersionState::kLoading && !wanted) it->unwanted->Cancel();
    const bool idle = it->state == VersionState::kStart || it->state == VersionState::kEnd;
    if (wanted || !idle) {
      ++it;
      continue;
    }
    if (it->failures > 0 && it->revision == current_revision()) EndFailed(*it);
    it = servables_.erase(it);
  }
}

void ModelEntry::Publish() {
  for (Servable& servable : servables_)
    if (servable.state == VersionState::kAvailable && WantedByCurrent(servable))
      servable.published = true;
}

void ModelEntry::Withdraw(Actions* actions) {
  for (Servable& servable : servables_) {
    if (servable.state != VersionState::kAvailable || IsWanted(servable) || !MayWithdraw(servable))
      continue;
    servable.published = false;
    servable.state = VersionState::kUnloading;
    actions->unloads.push_back({name_, servable.id});
  }
}

bool ModelEntry::MayWithdraw(const Servable& servable) const {
  if (!servable.published || !current_) return true;
  bool some_available = false, some_coming = false;
  for (const int64_t version : wanted_by_current_) {
    const Servable* wanted = Find(current_->revision, version);
    const bool available = wanted != nullptr && wanted->state == VersionState::kAvailable;
    some_available |= available;
    some_coming |= !available && (wanted == nullptr || wanted->failures == 0);
  }
  return some_available && !some_coming;
}

void ModelEntry::StartLoads(TimePoint now, Actions* actions) {
  for (Servable& servable : servables_) {
    if (servable.state != VersionState::kStart || !IsWanted(servable)) continue;
    if (now < servable.retry_at) {
      actions->next = std::min(actions->next, servable.retry_at);
      continue;
    }
    servable.state = VersionState::kLoading;
    servable.unwanted = std::make_shared<CancelToken>();
    ended_.erase(
        std::remove_if(ended_.begin(), ended_.end(),
                       [&](const VersionStatus& one) { return one.version == servable.version; }),
        ended_.end());
    const Target& target = WantedByStaged(servable) ? *staged_ : *current_;
    actions->loads.push_back({name_, servable.id, servable.config, servable.version, servable.file,
                              target.weights, servable.unwanted, WantedByStaged(servable)});
  }
}

}  // namespace floe::server
