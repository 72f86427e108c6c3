// ModelEntry: one configured model's versions and what is to happen to them next. Decisions only:
// files are looked at, models loaded and unloaded by whoever carries out the actions.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/cpu_budget.h"
#include "server/registry/registry.h"
#include "server/registry/version_scan.h"

namespace floe::server {

using ServableId = int64_t;

// Look under base_path and report with Scanned.
struct ScanAction {
  std::string model;
  int64_t ticket = 0;
  std::string base_path;
  VersionsToScan versions;
  TimePoint due;
};

// Load and warm up, and report with Loaded.
struct LoadAction {
  std::string model;
  ServableId id = 0;
  std::shared_ptr<const ModelConfig> config;
  int64_t version = 0;
  std::string file;
  CpuShares weights;  // of the configuration that it is loaded for
  // Raised when nobody wants the version any more: the load ends with CANCELLED as soon as it can.
  std::shared_ptr<const CancelToken> unwanted;
  bool staged = false;  // for a configuration that is being tried
};

// Let requests in progress end, free it all, and report with Unloaded. New requests have not found
// it since before.
struct UnloadAction {
  std::string model;
  ServableId id = 0;
};

struct Actions {
  std::vector<ScanAction> scans;
  std::vector<LoadAction> loads;
  std::vector<UnloadAction> unloads;
  TimePoint next = TimePoint::max();  // when to ask again though nothing was reported
};

// How patient and how persistent to be.
struct LifecycleTimes {
  Duration poll = std::chrono::seconds(1);  // between two scans of a base_path; 0: only when told
  Duration retry = std::chrono::seconds(60);
  int64_t max_retries = 5;  // of loads, and of scans before a place counts as failed

  // Files of a version that stayed the same so long are complete.
  Duration Settle() const { return std::min<Duration>(poll, std::chrono::seconds(1)); }
};

// One version, or one attempt to have it, under one configuration.
struct Servable {
  ServableId id = 0;
  int64_t revision = 0;  // of the configuration it is made from
  int64_t version = 0;
  std::shared_ptr<const ModelConfig> config;
  std::string file;
  uint64_t stamp = 0;  // of the files it is made from
  // kStart: waits for its turn, or for `retry_at`; kEnd: failed, and will not be tried again while
  // its files stay as they are.
  VersionState state = VersionState::kStart;
  absl::Status error;  // of the last attempt
  int64_t failures = 0;
  bool retrying = false;  // a reload has it tried again: its failures say nothing yet
  TimePoint retry_at = TimePoint::min();
  bool published = false;  // requests may find it; only ever set while it is available
  std::optional<FileIdentity> identity;   // of the file it was loaded from
  absl::Status overwritten;               // that file has been written to, or replaced, since
  std::shared_ptr<CancelToken> unwanted;  // of the load
};

// A configuration of the model and what was found under its base_path.
struct Target {
  std::shared_ptr<const ModelConfig> config;
  CpuShares weights;        // of all models configured with it
  int64_t revision = 0;     // equal for configurations that load to the same
  int64_t scan_ticket = 0;  // of the scan under way; 0: none
  TimePoint next_scan = TimePoint::min();
  bool scanned = false;      // looked at least once
  absl::Status scan_error;   // of the last scan; `found` is of the last one that succeeded
  int64_t failed_scans = 0;  // one after the other
  bool given_up = false;     // they are not expected to succeed, though they go on
  struct Seen {
    FoundVersion files;
    TimePoint since;       // how long these have been its files
    bool settled = false;  // complete, as far as can be seen
  };
  std::vector<Seen> found;  // highest version first
  std::shared_ptr<EmptyVersions> empty = std::make_shared<EmptyVersions>();

  const Seen* Find(int64_t version) const;
};

// Threading: one thread at a time. Its servables' ids and revisions come from `next_id`, shared by
// all entries.
class ModelEntry {
 public:
  ModelEntry(std::string name, int64_t* next_id) : name_(std::move(name)), next_id_(next_id) {}

  const std::string& name() const { return name_; }
  // The configuration active; none for a model that is only being tried, or being removed.
  const std::optional<Target>& current() const { return current_; }
  // The one that a reload tries.
  const std::optional<Target>& staged() const { return staged_; }
  const std::list<Servable>& servables() const { return servables_; }
  bool Empty() const { return !current_ && !staged_ && servables_.empty(); }

  void SetCurrent(std::shared_ptr<const ModelConfig> config, const CpuShares& weights);
  // Looks and loads beside what is active. Versions that have failed, and may succeed, are tried
  // again. Where the configuration loads to the same as before, versions known to fail, also from
  // an attempt before, are no reason for this one to fail.
  void Stage(std::shared_ptr<const ModelConfig> config, const CpuShares& weights);
  void Commit();   // staged becomes current
  void Abandon();  // staged is dropped
  void Remove();   // there is no configuration any more

  // How far the staged configuration is. An error ends the attempt. When not `patient`, a scan that
  // has not ended does not hold up what stays as it is.
  enum class Progress { kWaiting, kReady };
  absl::StatusOr<Progress> StagedProgress(bool patient) const;
  // "version 3 is being loaded"; what StagedProgress waits for.
  std::string StagedWaitsFor() const;

  // The scan with this ticket does not take place yet: Step asks for it again.
  void PutOffScan(int64_t ticket);

  // What happened. Unknown tickets and ids are ignored. Scanned: whether something is different.
  bool Scanned(int64_t ticket, const absl::StatusOr<std::vector<FoundVersion>>& found,
               TimePoint now, const LifecycleTimes& times);
  // `identity`: of the file, where it is known.
  void Loaded(ServableId id, const absl::Status& status, TimePoint now, const LifecycleTimes& times,
              const std::optional<FileIdentity>& identity = {});
  // `status`: why not all of it ended.
  void Unloaded(ServableId id, const absl::Status& status = absl::OkStatus());
  // Memory came back: what was refused for lack of it is tried at once, also what was given up.
  void RetryRefused();

  // What is to be done now, each action once; publishes and withdraws.
  void Step(TimePoint now, Actions* actions);

  // A version is available, or nothing more will happen by itself but for retries and changes of
  // files.
  bool Settled() const;
  // No version is available, and none will be before files or the configuration change.
  bool Failed() const;
  std::vector<const Servable*> Published() const;  // newest version first, each version once
  bool Available() const { return !Published().empty(); }
  // Of the active configuration, newest version first, then those that ended; none where none has
  // been found.
  std::vector<VersionStatus> Statuses() const;
  // Why there is no version, for one who asks for the model; OK while that may still change.
  absl::Status LastError() const;

  // Once the staged configuration is active.
  bool WillBeAvailable(int64_t version) const;
  // Served now, and no longer then, though the active configuration would keep it.
  bool WillBeDropped(int64_t version) const;

 private:
  static constexpr size_t kEndedKept = 3;

  // How much of what was found counts.
  enum class Scope {
    kActive,    // complete versions, and older ones in the place of those that fail
    kStrict,    // complete versions
    kStaged,    // and older ones in the place of those that failed before
    kExpected,  // all
  };
  std::vector<int64_t> Wanted(const Target& target, Scope scope) const;
  int64_t current_revision() const { return current_ ? current_->revision : 0; }  // 0: none
  bool WantedAsBefore(int64_t version) const;
  bool NewlyNamed() const;
  void UpdateWanted();
  bool WantedByCurrent(const Servable& servable) const;
  bool WantedByStaged(const Servable& servable) const;
  bool IsWanted(const Servable& servable) const;
  bool OnlyWantedByStagedAreThere() const;
  const Servable* Find(int64_t revision, int64_t version) const;
  Servable* Find(int64_t revision, int64_t version);
  std::vector<int64_t> Incomplete(const Target& target) const;

  void HandOutScan(std::optional<Target>* target, TimePoint now, Actions* actions);
  VersionsToScan ToScan(const Target& target) const;
  void EnsureServables(Target* target, Scope scope);
  bool EnsureServable(Target* target, int64_t version);  // false: it fails, as was not known before
  void Prune();
  void Publish();
  void Withdraw(Actions* actions);
  bool Compare(const Target& target, const FoundVersion& files);
  void EndLoad(std::list<Servable>::iterator it, const absl::Status& status, TimePoint now,
               const LifecycleTimes& times);
  bool MayWithdraw(const Servable& servable) const;
  void StartLoads(TimePoint now, Actions* actions);
  void End(int64_t version, const absl::Status& error);
  void EndFailed(const Servable& servable);
  void RecallAttempt(Servable* servable);

  const std::string name_;
  int64_t* const next_id_;
  std::optional<Target> current_, staged_;
  // As of the last change: what the configurations want, kActive and kStaged.
  std::set<int64_t> wanted_by_current_, wanted_by_staged_;
  std::set<int64_t> failed_before_;  // versions of the staged revision known to fail
  struct FailedAttempt {
    std::string file;
    uint64_t stamp = 0;
    absl::Status error;
  };
  // By version: of the revision active, but for versions that it has among its servables.
  std::map<int64_t, FailedAttempt> failed_attempts_;
  bool same_config_ = false;  // staged is what current is
  std::list<Servable> servables_;
  std::deque<VersionStatus> ended_;  // newest first
};

}  // namespace floe::server
