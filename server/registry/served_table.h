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

#include "base/file_identity.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "server/registry/readiness.h"
#include "server/registry/registry.h"
#include "server/scheduling/incident_log.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {

// A loaded version with its queue.
// Threading: any thread. Stop() before the last handle goes: the queue's threads cannot end
// themselves.
class LocalServed : public ServedModel {
 public:
  // `file`: the memory of a mapped file in which weights lie. `memory_bytes`: of weights and plans.
  LocalServed(ModelHandle model, ReplyEncoding reply, std::unique_ptr<Executor> executor,
              Scheduler::Options options, MemoryShare file, int64_t memory_bytes,
              std::optional<FileIdentity> identity = {})
      : file_(std::move(file)),
        memory_bytes_(memory_bytes),
        identity_(identity),
        model_(std::move(model)),
        reply_(reply),
        scheduler_(std::move(executor), std::move(options)) {}

  const ModelHandle& model() const override { return model_; }
  ReplyEncoding reply_encoding() const override { return reply_; }
  void Submit(std::unique_ptr<Request> request) override { scheduler_.Submit(std::move(request)); }
  void CountRefused(absl::StatusCode code) override { scheduler_.CountRefused(code); }
  Scheduler& scheduler() { return scheduler_; }
  // Logs what went wrong of late. Called now and then, by one thread.
  void LogIncidents(TimePoint now);
  // Finishes what is queued, ends the queue's threads, and logs what was asked, if anything was.
  void Stop() { (void)StopBy(TimePoint::max()); }
  // As of Scheduler::StopBy.
  bool StopBy(TimePoint deadline);
  int64_t memory_bytes() const { return memory_bytes_; }  // when it was loaded
  // Of the file it was loaded from; none: of no file.
  const std::optional<FileIdentity>& identity() const { return identity_; }

 private:
  const MemoryShare file_;  // given back after the model
  const int64_t memory_bytes_;
  const std::optional<FileIdentity> identity_;
  const ModelHandle model_;
  const ReplyEncoding reply_;
  Scheduler scheduler_;
  IncidentLog incidents_;
};

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
  // Sets the health of models whose work does not go on (IsStuck), and of those where it does
  // again; logs what is new.
  void CheckStuck(TimePoint now);
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
