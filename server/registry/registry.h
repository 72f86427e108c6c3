// ModelRegistry: which models and versions there are, their states, and how an RPC gets hold of
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "config/config.h"
#include "runtime/model.h"
#include "server/loading/model_devices.h"
#include "server/loading/served_model.h"
#include "server/scheduling/stats.h"

namespace floe::server {

// Numbers as in GetModelStatusResponse.
enum class VersionState : int {
  kUnknown = 0,
  kStart = 10,
  kLoading = 20,
  kAvailable = 30,
  kUnloading = 40,
  kEnd = 50
};
const char* VersionStateName(VersionState state);

struct VersionStatus {
  int64_t version = 0;
  VersionState state = VersionState::kUnknown;
  absl::Status error;  // why a version ended; OK otherwise
};

// Which version of a model a request means. Neither: the newest available one; never both.
struct VersionChoice {
  std::optional<int64_t> version;
  std::string_view label;  // empty: none
};

// Where a version is computed.
struct PlaceStats {
  std::string device;   // "cuda:0", or "cpu"
  std::string why_cpu;  // empty: by a device
  absl::Status error;   // its device is lost
  std::vector<IslandInfo> islands;
  int64_t device_bytes = 0;     // of its weights there
  int64_t answered_by_cpu = 0;  // runs of islands that the device failed and the CPU computed
};

struct VersionStats {
  VersionStatus status;
  std::optional<SchedulerStats> scheduler;  // of a version that is served
  PlaceStats place;                         // the same
  int64_t memory_bytes = 0;                 // of its weights and plans, as it was loaded
  std::string file;                         // it was loaded from
  std::string load_stage;                   // of a load under way
  Duration loading = Duration::zero();      // since when
};
struct ModelStats {
  std::string name;
  std::vector<VersionStats> versions;  // newest first
  std::map<std::string, int64_t, std::less<>> labels = {};
};

// Versions that were unloaded while runs of them would not end.
struct AbandonedWork {
  int64_t versions = 0;
  int64_t threads = 0;  // in those runs; more where runs are split over several
};

// An attempt to change the configuration.
struct ConfigChange {
  int64_t generation = 0;  // that is active since then
  TimePoint when;
  std::string who;     // as of ReloadRequest
  std::string what;    // changed; "": nothing did
  absl::Status error;  // of one that failed
};

// The active configuration, and how the last attempts to change it went.
struct ConfigState {
  static constexpr size_t kMostChanges = 20;

  int64_t generation = 1;   // of the active configuration; each Reload that succeeds adds one
  absl::Status last_error;  // of the last Reload; OK after one that succeeded
  std::vector<ModelConfig> models;
  std::vector<ConfigChange> changes = {};  // the last kMostChanges since the start, oldest first

  void Note(ConfigChange change);
};

// A change of the configuration to these models, all of it or nothing. Versions are scanned for at
// once, and what is new is loaded. When all of it is available it replaces what was there; requests
// in progress end on what they began with. After an error the old configuration stays active.
struct ReloadRequest {
  std::vector<ModelConfig> models;
  TimePoint deadline;
  std::optional<int64_t> replaces = {};  // the generation that must be active when its turn comes
  std::shared_ptr<CancelToken> cancel = nullptr;  // ends it with CANCELLED; may be null
  std::string who = "the server";                 // for the log: "RPC from 127.0.0.1:40213"
};
using ReloadDone = std::function<void(const absl::Status&)>;

// ABORTED, with both numbers, unless the active configuration is the generation expected.
absl::Status CheckGeneration(int64_t expected, int64_t active);

// Threading: any thread; readers never wait for a load.
class ModelRegistry {
 public:
  virtual ~ModelRegistry() = default;

  // NOT_FOUND: unknown model (names the nearest model names), or a version that is not loaded.
  // INVALID_ARGUMENT: unknown label. FAILED_PRECONDITION: the label's version is not available.
  // UNAVAILABLE: no version is available yet, with the load error if there is one. Allocates
  // nothing when it succeeds.
  virtual absl::StatusOr<ServedHandle> Acquire(std::string_view name,
                                               const VersionChoice& choice) const = 0;

  // Newest version first, of those that have ended only the last few; errors of names, versions and
  // labels as above, but a version in any state will do. NOT_FOUND: no version has been found, with
  // the reason if there is one.
  virtual absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                            const VersionChoice& choice) const = 0;
  // What every model does, by name, or one of them; NOT_FOUND as above. Empty name: all.
  virtual absl::StatusOr<std::vector<ModelStats>> Stats(std::string_view name) const = 0;
  // What is left of versions that are shown no more.
  virtual AbandonedWork Abandoned() const { return {}; }
  // What there is to compute with.
  virtual BackendStatus Backend() const { return {}; }

  // One at a time: others wait their turns, within their own deadlines. `done` is called once, now
  // or later, on any thread, and comes back soon. INVALID_ARGUMENT, NOT_FOUND and others name the
  // model. FAILED_PRECONDITION: a label would lead to a version that is not available, or is
  // dropped. DEADLINE_EXCEEDED says what was still going on. ABORTED: another generation is active.
  // RESOURCE_EXHAUSTED: too many wait; UNAVAILABLE: the server stops.
  virtual void StartReload(ReloadRequest request, ReloadDone done) = 0;
  // The same, and waits for its end: never on a thread that serves.
  absl::Status Reload(ReloadRequest request);
  virtual ConfigState CurrentConfig() const = 0;
};

}  // namespace floe::server
