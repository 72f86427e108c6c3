#include "server/registry/model_events.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/registry/desired.h"
#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

// Files that have been left alone so long are complete at the first scan. The host of the files may
// have another idea of the time; it should not be further away than this.
constexpr Duration kClockSkew = std::chrono::minutes(1);

// OK: both are the same contents, as far as can be told.
absl::Status CompareFiles(const FileIdentity& loaded, const FileIdentity& now) {
  const bool same_file = loaded.device == now.device && loaded.inode == now.inode;
  if (same_file && loaded.size == now.size && loaded.modified_ns == now.modified_ns)
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "its file was ", same_file ? "overwritten in place" : "replaced", " after it was loaded (",
      loaded.size, " bytes then, ", now.size,
      " now): what was loaded still serves; put another model under another version's number"));
}

// Whether a loaded version's file is still what was loaded. True: that is something new.
bool NoteFile(Servable* one, const FoundVersion& files) {
  if (one == nullptr || !one->identity || !files.identity) return false;
  const absl::Status before =
      std::exchange(one->overwritten, CompareFiles(*one->identity, *files.identity));
  return one->overwritten != before;
}

// True: something is different.
bool NoteOutcome(Target* target, const absl::Status& outcome, TimePoint now,
                 const LifecycleTimes& times) {
  const bool polls = times.poll > Duration::zero(), gave_up = target->given_up;
  target->failed_scans = outcome.ok() ? 0 : target->failed_scans + 1;
  target->given_up = !outcome.ok() && (!MayRetry(outcome) || absl::IsNotFound(outcome) ||
                                       absl::IsPermissionDenied(outcome) ||
                                       target->failed_scans > times.max_retries || !polls);
  const bool changed =
      !target->scanned || target->scan_error != outcome || target->given_up != gave_up;
  target->scan_ticket = 0;
  target->scanned = true;
  target->next_scan = polls ? now + times.poll : TimePoint::max();
  target->scan_error = outcome;
  return changed;
}

// One version's files, as they are now. `changed` is set where that is something new.
Target::Seen See(ModelState* model, Target* target, const FoundVersion& files, TimePoint now,
                 Duration settle, bool* changed) {
  const Target::Seen* before = target->Find(files.version);
  *changed |= before == nullptr;
  if (!files.scanned) {
    // What is known of the files of a loaded version is true of it; else it may be out of date.
    Servable* one = model->Find(target->revision, files.version);
    *changed |= NoteFile(one, files);
    return before != nullptr && one != nullptr && one->Loaded() ? *before
                                                                : Target::Seen{files, now, true};
  }
  const bool same = before != nullptr && before->files.stamp == files.stamp;
  const TimePoint since = same ? before->since : now;
  const bool settled = files.quiet >= kClockSkew || now - since >= settle;
  *changed |= !same || before->settled != settled;
  if (!settled) target->next_scan = std::min(target->next_scan, now + settle);
  return {files, since, settled};
}

std::list<Servable>::iterator FindById(ModelState* model, ServableId id, VersionState state) {
  return std::find_if(
      model->servables.begin(), model->servables.end(),
      [id, state](const Servable& one) { return one.id == id && one.state == state; });
}

}  // namespace

bool NoteScanned(ModelState* model, int64_t ticket,
                 const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now,
                 const LifecycleTimes& times) {
  Target* target = nullptr;
  for (std::optional<Target>* one : {&model->current, &model->staged})
    if (*one && (*one)->scan_ticket == ticket) target = &**one;
  if (target == nullptr) return false;
  bool changed = NoteOutcome(target, found.status(), now, times);
  if (!found.ok()) return changed;
  changed |= found->size() != target->found.size();
  std::vector<Target::Seen> seen;
  for (const FoundVersion& files : *found)
    seen.push_back(See(model, target, files, now, times.Settle(), &changed));
  target->found = std::move(seen);
  if (target->revision == model->current_revision())
    model->ForgetAttempts(
        [target](const AttemptKey& key) { return target->Find(key.version) != nullptr; });
  return changed;
}

void PutOffScan(ModelState* model, int64_t ticket) {
  for (std::optional<Target>* one : {&model->current, &model->staged})
    if (*one && (*one)->scan_ticket == ticket) (*one)->scan_ticket = 0;
}

void NoteLoaded(ModelState* model, ServableId id, const absl::Status& status, TimePoint now,
                const LifecycleTimes& times, const std::optional<FileIdentity>& identity) {
  const auto one = FindById(model, id, VersionState::kLoading);
  if (one == model->servables.end()) return;
  one->identity = identity;
  one->overwritten = absl::OkStatus();
  Attempt& attempt = *one->attempt;
  const Desired desired = DesiredOf(*model);
  if (status.ok()) {
    one->state = VersionState::kAvailable;
    attempt = Attempt();
    return;
  }
  if (absl::IsCancelled(status)) {
    one->state = VersionState::kStart;  // it was given up, and may be wanted again
    if (desired.Has(*one)) return;
    attempt.failures = 0;
    model->Erase(one);
    return;
  }
  attempt.error = status;
  attempt.retrying = false;
  ++attempt.failures;
  if (!desired.Has(*one)) {
    model->NoteEnd(one->version(), status);
    model->Erase(one);
    return;
  }
  const bool again =
      desired.ByCurrent(*one) && MayRetry(status) && attempt.failures <= times.max_retries;
  one->state = again ? VersionState::kStart : VersionState::kEnd;
  attempt.retry_at = now + times.retry;
}

void NoteUnloaded(ModelState* model, ServableId id, const absl::Status& status) {
  const auto one = FindById(model, id, VersionState::kUnloading);
  if (one == model->servables.end()) return;
  model->NoteEnd(one->version(), status);
  model->Erase(one);
}

void RetryRefused(ModelState* model) {
  for (Servable& one : model->servables) {
    const bool waits = one.state == VersionState::kStart || one.state == VersionState::kEnd;
    if (!waits || !absl::IsResourceExhausted(one.attempt->error) || !one.MayRetryLoad()) continue;
    one.state = VersionState::kStart;
    one.attempt->retry_at = TimePoint::min();
  }
}

}  // namespace floe::server
