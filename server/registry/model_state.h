// ModelState: what is known of one configured model. Data alone. What it leads to is computed by
// desired.h and diff.h; staging.h and model_events.h change it; model_status.h reports it.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/cpu_budget.h"
#include "server/registry/registry.h"
#include "server/registry/version_scan.h"

namespace floe::server {

using ServableId = int64_t;

// How long to wait, and how often to try again.
struct LifecycleTimes {
  Duration poll = std::chrono::seconds(1);  // between two scans of a base_path; 0: only when told
  Duration retry = std::chrono::seconds(60);
  int64_t max_retries = 5;  // of loads, and of scans before a place counts as failed

  // Files of a version that stayed the same so long are complete.
  Duration Settle() const { return std::min<Duration>(poll, std::chrono::seconds(1)); }
};

// What is loaded: the files of one version, by their fingerprint, under one configuration.
struct AttemptKey {
  int64_t revision = 0;  // of the configuration; equal for configurations that load to the same
  int64_t version = 0;
  std::string file;    // empty: the version is not there
  uint64_t stamp = 0;  // of all its files

  bool operator<(const AttemptKey& other) const {
    return std::tie(revision, version, file, stamp) <
           std::tie(other.revision, other.version, other.file, other.stamp);
  }
};

// How attempts to load it went.
struct Attempt {
  int64_t failures = 0;  // one after the other
  absl::Status error;    // of the last
  TimePoint retry_at = TimePoint::min();
  bool retrying = false;       // a reload has it tried again: its failures say nothing yet
  bool failed_before = false;  // the reload under way: it had failed before that began
};

// One version under one configuration, from its first attempt until it is unloaded.
struct Servable {
  ServableId id = 0;
  AttemptKey key;
  std::shared_ptr<Attempt> attempt;  // never null
  std::shared_ptr<const ModelConfig> config;
  // kStart: waits for its turn, or for attempt->retry_at; kEnd: failed, and is not tried again
  // while its files stay as they are.
  VersionState state = VersionState::kStart;
  bool published = false;  // requests may find it; only ever set while it is available
  std::optional<FileIdentity> identity;   // of the file it was loaded from
  absl::Status overwritten;               // that file has been written to, or replaced, since
  std::shared_ptr<CancelToken> unwanted;  // of the load

  int64_t version() const { return key.version; }
  bool Failing() const { return attempt->failures > 0; }
  bool Available() const { return state == VersionState::kAvailable; }
  bool Loaded() const { return state == VersionState::kLoading || Available(); }  // or about to be
  // The load may end differently when it is done once more.
  bool MayRetryLoad() const;
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

  const Seen* Find(int64_t version) const;  // null: it was not found
};

// Threading: one thread at a time.
struct ModelState {
  std::string name;
  int64_t* next_id = nullptr;  // of servables, revisions and scans; shared by all models

  std::optional<Target> current;  // active; none: it is only being tried, or being removed
  std::optional<Target> staged;   // that a reload tries
  bool same_config = false;       // staged is what current is
  std::list<Servable> servables;
  // Of servables, and failed ones of the active configuration that nobody wants any more: the next
  // reload may come upon the same files.
  std::map<AttemptKey, std::shared_ptr<Attempt>> attempts;
  std::deque<VersionStatus> ended;  // newest first

  int64_t current_revision() const { return current ? current->revision : 0; }  // 0: none
  bool Empty() const { return !current && !staged && servables.empty(); }
  // The one that is not being unloaded; null: there is none.
  const Servable* Find(int64_t revision, int64_t version) const;
  Servable* Find(int64_t revision, int64_t version);
  // A fresh attempt for it, in the place of those at other files of that version.
  std::shared_ptr<Attempt> BeginAttempt(const AttemptKey& key);
  // Of attempts that failed and have no servable, keeps those for which keep(key) is true.
  template <class Keep>
  void ForgetAttempts(const Keep& keep) {
    std::erase_if(attempts,
                  [&](const auto& one) { return one.second.use_count() == 1 && !keep(one.first); });
  }
  // Returns the next one. A failure under the active configuration is remembered.
  std::list<Servable>::iterator Erase(std::list<Servable>::iterator servable);
  void NoteEnd(int64_t version, const absl::Status& error);
};

}  // namespace floe::server
