// ModelState: what is known of one configured model. Data alone. desired.h and diff.h compute what
// it leads to; model_events.h and staging.h change it; model_status.h reports it.
#pragma once

#include <algorithm>
#include <atomic>
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
#include "base/file_watcher.h"
#include "config/config.h"
#include "config/cpu_budget.h"
#include "server/loading/load_errors.h"
#include "server/registry/registry.h"
#include "server/registry/version_scan.h"

namespace floe::server {

using ServableId = int64_t;

// How long to wait, and how often to retry.
struct LifecycleTimes {
  Duration poll = std::chrono::seconds(1);  // between two scans of a base_path; 0: at reloads only
  Duration retry = std::chrono::seconds(60);
  int64_t max_retries = 5;  // of loads, and of scans before a place counts as failed
  Duration rescan = std::chrono::seconds(60);  // the most between two scans of what is watched

  // Files of a version that stayed the same so long are complete.
  Duration Settle() const { return std::min<Duration>(poll, std::chrono::seconds(1)); }
};

// ---- what a model is to serve ----

// One configuration of the model.
struct Configuration {
  std::shared_ptr<const ModelConfig> model;
  CpuShares cpu_shares;  // of all models configured with it
  int64_t revision = 0;  // equal for configurations that load to the same
  bool staged = false;   // a reload tries it: no older version stands in for one that fails
};

// What lies under the base_path of a configuration.
struct Found {
  struct Version {
    FoundVersion files;
    TimePoint since;       // how long these have been its files
    bool settled = false;  // loaded, or complete as far as can be seen
  };
  bool scanned = false;           // at least once
  bool fresh = false;             // the last scan succeeded; else these are of an earlier one
  std::vector<Version> versions;  // highest first

  const Version* Find(int64_t version) const {  // null: it was not found
    for (const Version& one : versions)
      if (one.files.version == version) return &one;
    return nullptr;
  }
};

// ---- how it went ----

// What is loaded: the files of one version, by their fingerprint, under one configuration.
struct AttemptKey {
  int64_t revision = 0;
  int64_t version = 0;
  std::string file;    // empty: there is none to load
  uint64_t stamp = 0;  // of all its files

  bool operator==(const AttemptKey&) const = default;
  bool operator<(const AttemptKey& other) const {
    return std::tie(revision, version, file, stamp) <
           std::tie(other.revision, other.version, other.file, other.stamp);
  }
};

// A load, or a scan, that failed so often, one after the other.
struct Attempt {
  int64_t failures = 0;
  absl::Status error;                     // of the last
  TimePoint retry_at = TimePoint::max();  // max(): not before something changes
  // How many reloads of the model had begun at the first failure, and at the last.
  int64_t first_reload = 0, last_reload = 0;
};
// What succeeded, or was never tried, is not in it.
using Attempts = std::map<AttemptKey, Attempt>;

// The load may end differently when it is done once more.
inline bool MayRetryLoad(const AttemptKey& key, const Attempt& attempt) {
  return !key.file.empty() && MayRetry(attempt.error);
}

// ---- what there is ----

// One version under one configuration, from the begin of its load until it is unloaded.
struct Servable {
  ServableId id = 0;
  AttemptKey key;
  std::shared_ptr<const ModelConfig> config;
  VersionState state = VersionState::kLoading;  // or kAvailable, kUnloading
  bool published = false;                       // requests may find it; only while it is available
  std::optional<FileIdentity> identity;         // of the file it was loaded from
  absl::Status overwritten;                     // that file has been written to, or replaced, since
  std::shared_ptr<CancelToken> unwanted;        // of the load

  int64_t version() const { return key.version; }
  bool Available() const { return state == VersionState::kAvailable; }
};
using Servables = std::list<Servable>;

// The one that is loading or available; null: there is none.
inline const Servable* FindServable(const Servables& servables, int64_t revision, int64_t version) {
  for (const Servable& one : servables)
    if (one.key.revision == revision && one.version() == version &&
        one.state != VersionState::kUnloading)
      return &one;
  return nullptr;
}

// Whether the system tells what changes under a base_path, so that scans need not look for it.
struct Watched {
  bool all = false;                       // that the last scan depends on
  bool changed = false;                   // since the last scan began
  bool tried = false;                     // by the last scan
  TimePoint retry_at = TimePoint::min();  // not before
  std::shared_ptr<FileWatch> watch = std::make_shared<FileWatch>();
};

// A configuration and the scans of its base_path.
struct Target {
  Configuration configuration;
  Found found;
  std::optional<Attempt> failed_scans;  // the last ones; retry_at is max() where it is given up,
                                        // though scans go on
  int64_t scan_ticket = 0;              // of the scan under way; 0: none
  TimePoint next_scan = TimePoint::min();
  std::shared_ptr<EmptyVersions> empty = std::make_shared<EmptyVersions>();
  Watched watched;

  const ModelConfig& config() const { return *configuration.model; }
  int64_t revision() const { return configuration.revision; }
  absl::Status scan_error() const { return failed_scans ? failed_scans->error : absl::OkStatus(); }
};

// Threading: one thread at a time.
struct ModelState {
  std::string name;
  std::optional<Target> current;      // active; none: it is only being tried, or being removed
  std::optional<Target> staged;       // that a reload tries
  std::optional<Configuration> kept;  // of a reload that has nothing to try: it loads to the same
  int64_t reloads = 0;                // that have begun
  Servables servables;
  // Of both configurations, also of versions that nobody wants any more: the next reload may come
  // upon the same files.
  Attempts attempts;
  std::deque<VersionStatus> ended;  // were unloaded, or failed and are gone; newest first

  int64_t current_revision() const { return current ? current->revision() : 0; }  // 0: none
  bool Empty() const { return !current && !staged && servables.empty(); }
  const Servable* Find(int64_t revision, int64_t version) const {
    return FindServable(servables, revision, version);
  }
};

// Of servables, scans and revisions; never the same twice. Threading: any thread.
inline int64_t NextId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace floe::server
