#include "server/registry/diff.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

absl::Status NotThere(const Target& target, int64_t version) {
  std::vector<int64_t> found;
  for (const Target::Seen& seen : target.found) found.push_back(seen.files.version);
  return absl::NotFoundError(
      absl::StrCat("there is no version ", version, " under '", target.config->base_path,
                   "'; it holds ", found.empty() ? "none" : absl::StrJoin(found, ", "),
                   "; copy the version there, or take it from the specific versions of the model"));
}

// ---- servables for what is desired ----

// An attempt has failed with these files. Had there been no other reason for it, the active
// configuration would have found that out. What that would not ask for is tried as if it were new.
bool Recall(const ModelState& model, Servable* one) {
  const auto it = model.attempts.find(one->key);
  if (it == model.attempts.end() || it->second->failures == 0 ||
      !DesiredAsBefore(model, one->version()))
    return false;
  one->attempt = it->second;
  one->attempt->failures = 1;
  one->attempt->failed_before = true;
  one->attempt->retrying = one->MayRetryLoad();
  one->attempt->retry_at = TimePoint::min();
  one->state = one->attempt->retrying ? VersionState::kStart : VersionState::kEnd;
  return true;
}

// Whether the version has files to make a servable of, or is known not to be there.
bool Decided(Target* target, const Target::Seen* seen) {
  if (!target->scanned || (seen == nullptr && !target->scan_error.ok())) return false;
  if (seen != nullptr && !seen->files.scanned) {
    // It was not wanted when its place was looked at. A place that cannot be looked at has its
    // time.
    if (target->scan_error.ok()) target->next_scan = TimePoint::min();
    return false;
  }
  return seen == nullptr || seen->settled;
}

// False: it fails at once.
bool AddServable(ModelState* model, Target* target, bool staged, int64_t version) {
  Servable* one = model->Find(target->revision, version);
  if (one != nullptr && one->Loaded()) return true;
  const Target::Seen* seen = target->Find(version);
  if (!Decided(target, seen)) return true;
  const AttemptKey key{target->revision, version, seen == nullptr ? "" : seen->files.file,
                       seen == nullptr ? 0 : seen->files.stamp};
  if (one != nullptr && one->key.stamp == key.stamp && one->key.file == key.file) return true;
  if (one == nullptr) {
    one = &model->servables.emplace_back();
    one->id = (*model->next_id)++;
    one->config = target->config;
  }
  one->key = key;
  if (staged && key.revision == model->current_revision() && Recall(*model, one)) return false;
  const absl::Status error = seen == nullptr ? NotThere(*target, version) : seen->files.error;
  one->attempt = model->BeginAttempt(key);
  one->attempt->error = error;
  one->attempt->failures = error.ok() ? 0 : 1;
  one->state = error.ok() ? VersionState::kStart : VersionState::kEnd;
  return error.ok();
}

// A version that fails at once gives its place to the next older one.
void AddServables(ModelState* model, Target* target, bool staged) {
  const Scope scope = staged ? Scope::kStrict : Scope::kActive;
  for (bool failed = true; failed;) {
    failed = false;
    for (const int64_t version : DesiredVersions(*model, *target, scope))
      failed |= !AddServable(model, target, staged, version);
  }
}

// ---- the difference ----

// Nothing is taken away before what takes its place is there.
bool MayWithdraw(const ModelState& model, const Desired& desired, const Servable& servable) {
  if (!servable.published || !model.current) return true;
  bool some_available = false, some_coming = false;
  for (const auto& [revision, version] : desired.current) {
    const Servable* one = model.Find(revision, version);
    const bool available = one != nullptr && one->Available();
    some_available |= available;
    some_coming |= !available && (one == nullptr || !one->Failing());
  }
  return some_available && !some_coming;
}

bool Holds(const std::vector<ServableId>& ids, ServableId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

LoadAction StartLoad(ModelState* model, const Desired& desired, Servable* one) {
  one->state = VersionState::kLoading;
  one->unwanted = std::make_shared<CancelToken>();
  std::erase_if(model->ended,
                [one](const VersionStatus& ended) { return ended.version == one->version(); });
  const bool staged = desired.ByStaged(*one);
  const Target& target = staged ? *model->staged : *model->current;
  return {model->name,   one->id,        one->config,   one->version(),
          one->key.file, target.weights, one->unwanted, staged};
}

void Apply(const Diff& diff, const Desired& desired, ModelState* model, Actions* actions) {
  for (auto it = model->servables.begin(); it != model->servables.end();) {
    Servable& one = *it;
    if (Holds(diff.drop, one.id)) {
      if (one.Failing() && one.key.revision == model->current_revision())
        model->NoteEnd(one.version(), one.attempt->error);
      it = model->Erase(it);
      continue;
    }
    if (Holds(diff.cancel, one.id)) one.unwanted->Cancel();
    if (Holds(diff.publish, one.id)) one.published = true;
    if (Holds(diff.withdraw, one.id)) {
      one.published = false;
      one.state = VersionState::kUnloading;
      actions->unloads.push_back({model->name, one.id});
    }
    if (Holds(diff.load, one.id)) actions->loads.push_back(StartLoad(model, desired, &one));
    ++it;
  }
  actions->next = std::min(actions->next, diff.next);
}

// ---- scans ----

// What DesiredVersions skips, in any scope, is skipped here, so that all it names are looked at.
VersionsToScan ToScan(const ModelState& model, const Target& target) {
  VersionsToScan scan{target.config->versions};
  scan.marker = target.config->completion_marker;
  scan.labelled = LabelledVersions(*target.config);
  scan.empty = target.empty;
  for (const Target::Seen& seen : target.found)
    if (!seen.settled) scan.skipped.insert(seen.files.version);
  for (const Servable& one : model.servables) {
    if (one.key.revision != target.revision) continue;
    if (one.Loaded()) scan.known.insert(one.version());
    if (one.Available()) scan.loaded_files[one.version()] = one.key.file;
    if (one.Failing()) scan.skipped.insert(one.version());
  }
  return scan;
}

void HandOutScan(const ModelState& model, std::optional<Target>* target, TimePoint now,
                 Actions* actions) {
  if (!*target || (*target)->scan_ticket != 0) return;
  if (now < (*target)->next_scan) {
    actions->next = std::min(actions->next, (*target)->next_scan);
    return;
  }
  (*target)->scan_ticket = (*model.next_id)++;
  actions->scans.push_back({model.name, (*target)->scan_ticket, (*target)->config->base_path,
                            ToScan(model, **target), (*target)->next_scan});
}

}  // namespace

Diff DiffOf(const ModelState& model, const Desired& desired, TimePoint now) {
  Diff diff;
  for (const Servable& one : model.servables) {
    const bool wanted = desired.Has(one);
    switch (one.state) {
      case VersionState::kLoading:
        if (!wanted) diff.cancel.push_back(one.id);
        break;
      case VersionState::kAvailable:
        if (desired.ByCurrent(one)) diff.publish.push_back(one.id);
        if (!wanted && MayWithdraw(model, desired, one)) diff.withdraw.push_back(one.id);
        break;
      case VersionState::kStart:
        if (wanted && one.attempt->retry_at <= now) diff.load.push_back(one.id);
        if (wanted && one.attempt->retry_at > now)
          diff.next = std::min(diff.next, one.attempt->retry_at);
        [[fallthrough]];
      case VersionState::kEnd:
        if (!wanted) diff.drop.push_back(one.id);
        break;
      default:
        break;
    }
  }
  return diff;
}

void Reconcile(ModelState* model, TimePoint now, Actions* actions) {
  if (model->current) AddServables(model, &*model->current, false);
  if (model->staged) AddServables(model, &*model->staged, true);
  const Desired desired = DesiredOf(*model);
  Apply(DiffOf(*model, desired, now), desired, model, actions);
  HandOutScan(*model, &model->current, now, actions);
  HandOutScan(*model, &model->staged, now, actions);
}

}  // namespace floe::server
