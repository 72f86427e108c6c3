// The one place where a model's servables, attempts and findings change: by the difference to what
// is desired, and by the ends of scans, loads and unloads.
#include "server/registry/model_events.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/loading/load_errors.h"
#include "server/registry/version_policy.h"

namespace floe::server {
namespace {

constexpr size_t kEndedKept = 3;
// Files that have been left alone so long are complete at the first scan. The host of the files may
// have another idea of the time; it should not be further away than this.
constexpr Duration kClockSkew = std::chrono::minutes(1);

Servables::iterator FindById(ModelState* model, ServableId id, VersionState state) {
  return std::find_if(
      model->servables.begin(), model->servables.end(),
      [id, state](const Servable& one) { return one.id == id && one.state == state; });
}

void NoteEnd(ModelState* model, int64_t version, const absl::Status& error) {
  if (!model->current) return;
  model->ended.push_front({version, VersionState::kEnd, error});
  if (model->ended.size() > kEndedKept) model->ended.pop_back();
}

// ---- what is decided ----

void NoteFailure(ModelState* model, const AttemptKey& key, const absl::Status& error,
                 TimePoint retry_at) {
  Attempt& attempt = model->attempts[key];
  if (attempt.failures++ == 0) attempt.first_reload = model->reloads;
  attempt.last_reload = model->reloads;
  attempt.error = error;
  attempt.retry_at = retry_at;
}

void StartLoad(ModelState* model, const Actions::Load& load, Work* work) {
  std::erase_if(model->ended,
                [&load](const VersionStatus& one) { return one.version == load.key.version; });
  const Configuration& from = (load.staged ? model->staged : model->current)->configuration;
  Servable& one = model->servables.emplace_back();
  one.id = NextId();
  one.key = load.key;
  one.config = from.model;
  one.unwanted = std::make_shared<CancelToken>();
  work->loads.push_back({model->name, one.id, one.config, one.version(), one.key.file,
                         from.cpu_shares, one.unwanted, load.staged});
}

void Apply(const Actions& actions, ModelState* model, TimePoint now, Work* work) {
  for (const ServableId id : actions.cancel)
    FindById(model, id, VersionState::kLoading)->unwanted->Cancel();
  for (const ServableId id : actions.publish)
    FindById(model, id, VersionState::kAvailable)->published = true;
  for (const ServableId id : actions.withdraw) {
    const auto one = FindById(model, id, VersionState::kAvailable);
    one->published = false;
    one->state = VersionState::kUnloading;
    work->unloads.push_back({model->name, id});
  }
  for (const Actions::Load& load : actions.load) {
    if (load.at <= now) {
      StartLoad(model, load, work);
    } else {
      work->next = std::min(work->next, load.at);
    }
  }
}

// A version was not wanted when its place was scanned, and now is. A place that cannot be scanned
// has its time.
void ScanWhatIsDesired(const std::optional<Desired>& desired, const ModelState& model,
                       std::optional<Target>* target) {
  if (!desired || !(*target)->found.fresh) return;
  for (const DesiredVersion& one : desired->versions)
    if (!one.scanned && model.Find(one.key.revision, one.key.version) == nullptr)
      (*target)->next_scan = TimePoint::min();
}

// ---- what was found ----

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
bool NoteFile(ModelState* model, const Servable* loaded, const FoundVersion& files) {
  if (loaded == nullptr || !loaded->identity || !files.identity) return false;
  const auto one = FindById(model, loaded->id, loaded->state);
  const absl::Status before =
      std::exchange(one->overwritten, CompareFiles(*one->identity, *files.identity));
  return one->overwritten != before;
}

// True: something is different.
bool NoteOutcome(Target* target, const absl::Status& outcome, TimePoint now,
                 const LifecycleTimes& times) {
  const bool polls = times.poll > Duration::zero();
  std::optional<Attempt> failed;
  if (!outcome.ok()) {
    failed = target->failed_scans.value_or(Attempt());
    ++failed->failures;
    failed->error = outcome;
    const bool hopeless =
        !MayRetry(outcome) || absl::IsNotFound(outcome) || absl::IsPermissionDenied(outcome);
    const bool again = polls && !hopeless && failed->failures <= times.max_retries;
    failed->retry_at = again ? now + times.poll : TimePoint::max();
  }
  const auto given_up = [](const std::optional<Attempt>& scans) {
    return scans && scans->retry_at == TimePoint::max();
  };
  const bool changed = !target->found.scanned || target->scan_error() != outcome ||
                       given_up(target->failed_scans) != given_up(failed);
  target->scan_ticket = 0;
  target->found.scanned = true;
  target->found.fresh = outcome.ok();
  target->next_scan = polls ? now + times.poll : TimePoint::max();
  target->failed_scans = std::move(failed);
  return changed;
}

// One version's files, as they are now. `changed` is set where that is something new.
Found::Version See(ModelState* model, Target* target, const FoundVersion& files, TimePoint now,
                   Duration settle, bool* changed) {
  const Found::Version* const before = target->found.Find(files.version);
  const Servable* const loaded = model->Find(target->revision(), files.version);
  *changed |= before == nullptr;
  if (!files.scanned) {
    // What is known of the files of a loaded version is true of it; else it may be out of date.
    *changed |= NoteFile(model, loaded, files);
    const bool known = before != nullptr && loaded != nullptr;
    return {known ? before->files : files, known ? before->since : now, true};
  }
  const bool same = before != nullptr && before->files.stamp == files.stamp;
  const TimePoint since = same ? before->since : now;
  const bool settled = loaded != nullptr || files.quiet >= kClockSkew || now - since >= settle;
  *changed |= !same || before->settled != settled;
  if (!settled) target->next_scan = std::min(target->next_scan, now + settle);
  return {files, since, settled};
}

// Nothing of its files is waited for: each version is loaded, or more than its number was not asked
// for.
bool IsAtRest(const ModelState& model, const Target& target) {
  const auto rests = [&](const Found::Version& one) {
    if (!one.files.scanned) return true;
    const Servable* const loaded = model.Find(target.revision(), one.files.version);
    return loaded != nullptr && loaded->Available();
  };
  const std::vector<Found::Version>& versions = target.found.versions;
  return target.found.fresh && std::all_of(versions.begin(), versions.end(), rests);
}

// After a scan that succeeded. A difference that no watch has told means that paths lead elsewhere.
void NoteWatched(const ModelState& model, bool watches, bool differs, TimePoint now,
                 const LifecycleTimes& times, Target* target) {
  Watched& watched = target->watched;
  if (watched.tried && !watches) watched.retry_at = now + times.rescan;
  watched.all =
      (watches || (watched.all && !differs)) && !watched.changed && IsAtRest(model, *target);
  if (!watched.all) return;
  // Not all models at once; but those of the same poll, for which threads wake together.
  constexpr int64_t kTurns = 16;
  const TimePoint next = now + times.rescan - NextId() % kTurns * times.rescan / (2 * kTurns);
  target->next_scan = next - next.time_since_epoch() % times.poll;
}

// Whether these files are among what was found, as far as that is known.
bool MayBe(const AttemptKey& key, const std::optional<Target>& target) {
  if (!target || target->revision() != key.revision) return false;
  const Found::Version* const one = target->found.Find(key.version);
  if (one == nullptr) return false;
  return !one->files.scanned || (one->files.file == key.file && one->files.stamp == key.stamp);
}

bool Wants(const std::optional<Desired>& desired, const AttemptKey& key) {
  const DesiredVersion* const one = desired ? desired->Find(key.version) : nullptr;
  return one != nullptr && one->key == key;
}

// A staged configuration tries what the active one would not have come upon: its failures are news
// to whoever asked for the reload.
void ForgetWhatIsNews(ModelState* model) {
  const Desired active =
      DesiredOf(model->current->configuration, model->current->found, model->attempts);
  const Desired before =
      DesiredOf(model->current->configuration, model->staged->found, model->attempts);
  std::erase_if(model->attempts, [&](const auto& attempt) {
    const auto& [key, failed] = attempt;
    return failed.last_reload < model->reloads && before.Find(key.version) == nullptr &&
           active.Find(key.version) == nullptr && model->Find(key.revision, key.version) == nullptr;
  });
}

// Forgets failures of files that are gone, after a scan for this revision.
void ForgetAttempts(ModelState* model, int64_t revision) {
  const AllDesired desired = DesiredOf(*model);
  std::erase_if(model->attempts, [&](const auto& attempt) {
    const AttemptKey& key = attempt.first;
    if (key.revision != revision || model->Find(revision, key.version) != nullptr ||
        Wants(desired.current, key) || Wants(desired.staged, key) || MayBe(key, model->current) ||
        MayBe(key, model->staged))
      return false;
    if (revision == model->current_revision() && model->current->found.Find(key.version) == nullptr)
      NoteEnd(model, key.version, attempt.second.error);
    return true;
  });
}

}  // namespace

void Reconcile(ModelState* model, TimePoint now, Work* work) {
  std::erase_if(model->attempts, [model](const auto& one) {
    const int64_t revision = one.first.revision;
    return revision != model->current_revision() &&
           !(model->staged && revision == model->staged->revision());
  });
  // A version that fails at once gives its place to the next older one.
  for (;;) {
    const AllDesired desired = DesiredOf(*model);
    const Actions actions = DiffOf(desired, model->servables);
    for (const Actions::Failure& one : actions.fail)
      NoteFailure(model, one.key, one.error, TimePoint::max());
    if (!actions.fail.empty()) continue;
    Apply(actions, model, now, work);
    ScanWhatIsDesired(desired.current, *model, &model->current);
    ScanWhatIsDesired(desired.staged, *model, &model->staged);
    return;
  }
}

// What DesiredOf skips is skipped here, so that all it names are scanned.
ScanAction BeginScan(const ModelState& model, TimePoint now, Target* target) {
  VersionsToScan scan{target->config().versions};
  scan.marker = target->config().completion_marker;
  scan.labelled = LabelledVersions(target->config());
  scan.empty = target->empty;
  for (const Found::Version& one : target->found.versions)
    if (!one.settled) scan.skipped.insert(one.files.version);
  for (const auto& [key, attempt] : model.attempts)
    if (key.revision == target->revision()) scan.skipped.insert(key.version);
  for (const Servable& one : model.servables) {
    if (one.key.revision != target->revision() || one.state == VersionState::kUnloading) continue;
    scan.known.insert(one.version());
    if (one.Available()) scan.loaded_files[one.version()] = one.key.file;
  }
  target->scan_ticket = NextId();
  Watched& watched = target->watched;
  watched.changed = false;
  watched.tried = !watched.all && now >= watched.retry_at && IsAtRest(model, *target);
  return {model.name, target->scan_ticket, target->config().base_path, std::move(scan),
          watched.tried ? watched.watch : nullptr};
}

bool NoteScanned(ModelState* model, int64_t ticket, const ScanResult& result, TimePoint now,
                 const LifecycleTimes& times) {
  Target* target = nullptr;
  for (std::optional<Target>* one : {&model->current, &model->staged})
    if (*one && (*one)->scan_ticket == ticket) target = &**one;
  if (target == nullptr) return false;
  const auto& found = result.found;
  bool changed = NoteOutcome(target, found.status(), now, times);
  if (!found.ok()) {
    target->watched.all = false;
    return changed;
  }
  bool differs = found->size() != target->found.versions.size();
  std::vector<Found::Version> versions;
  for (const FoundVersion& files : *found)
    versions.push_back(See(model, target, files, now, times.Settle(), &differs));
  target->found.versions = std::move(versions);
  NoteWatched(*model, result.watches, differs, now, times, target);
  const bool staged = model->staged && target == &*model->staged;
  if (staged && target->revision() == model->current_revision()) ForgetWhatIsNews(model);
  ForgetAttempts(model, target->revision());
  return changed || differs;
}

void NoteFilesChanged(ModelState* model, TimePoint now) {
  for (std::optional<Target>* target : {&model->current, &model->staged}) {
    if (!*target) continue;
    (*target)->watched.changed = true;
    (*target)->watched.all = false;
    (*target)->next_scan = std::min((*target)->next_scan, now);
  }
}

void NoteLoaded(ModelState* model, ServableId id, const absl::Status& status, TimePoint now,
                const LifecycleTimes& times, const std::optional<FileIdentity>& identity) {
  const auto one = FindById(model, id, VersionState::kLoading);
  if (one == model->servables.end()) return;
  if (status.ok()) {
    one->state = VersionState::kAvailable;
    one->identity = identity;
    model->attempts.erase(one->key);
    return;
  }
  const AttemptKey key = one->key;
  model->servables.erase(one);
  if (absl::IsCancelled(status)) return;  // it was given up, and may be wanted again
  NoteFailure(model, key, status, TimePoint::max());
  // What a reload tries fails it at once.
  Attempt& attempt = model->attempts[key];
  if (key.revision == model->current_revision() && MayRetryLoad(key, attempt) &&
      attempt.failures <= times.max_retries)
    attempt.retry_at = now + times.retry;
}

void NoteUnloaded(ModelState* model, ServableId id, const absl::Status& status) {
  const auto one = FindById(model, id, VersionState::kUnloading);
  if (one == model->servables.end()) return;
  NoteEnd(model, one->version(), status);
  model->servables.erase(one);
}

bool RetryRefused(ModelState* model) {
  bool any = false;
  for (auto& [key, attempt] : model->attempts) {
    if (!absl::IsResourceExhausted(attempt.error) || !MayRetryLoad(key, attempt)) continue;
    attempt.retry_at = TimePoint::min();
    any = true;
  }
  return any;
}

}  // namespace floe::server
