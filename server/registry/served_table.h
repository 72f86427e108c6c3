// What requests see of the registry: loaded versions, each with its queue, in a table that is
// replaced as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/loading/local_served.h"
#include "server/registry/readiness.h"
#include "server/registry/registry.h"

namespace floe::server {

// It does not change once it is published.
struct ServedTable {
  struct Version {
    int64_t version = 0;
    ServedHandle handle;
    LocalServed* served = nullptr;  // lives as long as `handle`
  };
  struct Entry {
    std::map<std::string, int64_t, std::less<>> labels;
    std::vector<Version> available;       // newest first
    std::vector<VersionStatus> statuses;  // newest first
    absl::Status last_error;              // why none is available, as far as it is known
    bool settled = false;                 // IsSettled
    bool failed = false;                  // HasFailed
  };
  // One table has most of its entries from the one before.
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> models;
  std::shared_ptr<const ConfigState> config = std::make_shared<const ConfigState>();
  bool settled = false;
  bool stopping = false;

  // As ModelRegistry::Acquire and Status.
  absl::StatusOr<ServedHandle> Acquire(std::string_view name, const VersionChoice& choice) const;
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const;
  // How far the configured models are.
  struct Tally {
    size_t models = 0, available = 0;
    bool settled = false;             // all are
    std::vector<std::string> failed;  // names
  };
  Tally CountModels() const;
  // Loads and unloads, such as "model 'm' version 2 (LOADING)".
  std::string UnderWay() const;
};

// The readers' half of a registry. Threading: any thread; one at a time publishes.
class Publication : public ModelRegistry {
 public:
  // `health` outlives it; see Readiness. on_change(): the table may have changed.
  Publication(HealthState* health, bool strict_readiness, std::function<void()> on_change)
      : readiness_(health, strict_readiness), on_change_(std::move(on_change)) {}

  absl::StatusOr<ServedHandle> Acquire(std::string_view name,
                                       const VersionChoice& choice) const override;
  absl::StatusOr<std::vector<VersionStatus>> Status(std::string_view name,
                                                    const VersionChoice& choice) const override {
    return Table()->Status(name, choice);
  }
  ConfigState CurrentConfig() const override { return *Table()->config; }

  std::shared_ptr<const ServedTable> Table() const;
  void WaitUntilLoaded() const;  // until all have settled, or Close was called

  // Whoever hears that a model is ready finds it in the table. `changed`: the models whose entries
  // are not those of the table before.
  void Publish(ServedTable table, const std::set<std::string>& changed);
  // The model that the daemon's own probe asks; null: there is none.
  void SetProbe(std::shared_ptr<LocalServed> probe);
  // Whether the server as a whole answers (the daemon's probe); overall health needs it besides the
  // models.
  void SetAnswering(bool answering) { readiness_.SetAnswering(answering); }
  // Sets the health of models whose work does not go on (IsStuck) or whose device is lost, and of
  // those where it does again; logs what is new.
  void CheckAiling(TimePoint now);
  // Requests that come now are refused. Nothing is published afterwards.
  void Close();

 private:
  std::shared_ptr<const ServedTable> Replace(std::shared_ptr<const ServedTable> table);
  std::shared_ptr<LocalServed> Probe() const;

  Readiness readiness_;
  const std::function<void()> on_change_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::shared_ptr<const ServedTable> table_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const ServedTable>();
  std::shared_ptr<LocalServed> probe_ ABSL_GUARDED_BY(mutex_);
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;  // and the health service knows
};

}  // namespace floe::server
