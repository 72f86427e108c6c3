// Reloads: changes of the configuration, one after the other, each all or nothing. A Transaction is
// one of them, from who asks for it to how it ended.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/registry/model_state.h"
#include "server/registry/registry.h"
#include "server/registry/staging.h"

namespace floe::server {

// Every configured model, by name, and those that are being tried or removed.
using ModelStates = std::map<std::string, ModelState>;
ModelState& ModelNamed(const std::string& name, ModelStates* models);  // new when there is none

// INVALID_ARGUMENT, one line per mistake: models without a name or path, names given twice,
// policies that ask for nothing.
absl::Status CheckModels(const std::vector<ModelConfig>& models);

// Threading: one thread at a time.
class Transaction {
 public:
  Transaction(ReloadRequest request, ReloadDone done)
      : wanted(std::move(request)), done_(std::move(done)) {}
  // One that nobody ended goes because the server stops.
  ~Transaction() { End(absl::UnavailableError("the server is stopping")); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  const ReloadRequest wanted;

  // Nobody waits for it any more: it is to end with CANCELLED, unless it has ended.
  bool cancelled() const { return wanted.cancel != nullptr && wanted.cancel->cancelled(); }
  // The first outcome counts. From then on it does not listen to the caller's departure.
  void End(const absl::Status& outcome);

 private:
  ReloadDone done_;  // null: it has ended
};

// Threading: one thread at a time.
class Reloads {
 public:
  struct Ended {
    std::shared_ptr<Transaction> transaction;
    absl::Status status;
    std::string changes;  // DescribeChanges; of one that succeeded
  };

  // Both outlive it.
  Reloads(ModelStates* models, ConfigState* config, bool allow_labels_for_unavailable)
      : models_(*models), config_(*config), allow_labels_(allow_labels_for_unavailable) {}

  static constexpr size_t kMostWaiting = 8;
  void Add(std::shared_ptr<Transaction> wanted);  // ends it where so many wait
  // Those that have not ended, and all that come now, end with UNAVAILABLE.
  void Stop() { stopped_ = true; }
  void Drop() { queue_.clear(); }  // those that have not ended

  // Something has happened to these models: others are not asked again how far they are.
  void Touched(const std::set<std::string>& models) {
    touched_.insert(models.begin(), models.end());
  }
  bool any() const { return !queue_.empty(); }
  // Begins, ends or goes on with what is under way. True: involved() have something new to decide.
  bool Advance(TimePoint now, std::vector<Ended>* ended);
  // The models that the last one to begin may change.
  const std::set<std::string>& involved() const { return involved_; }
  TimePoint Next(TimePoint now) const;  // when to advance though nothing has happened

 private:
  void EndLate(TimePoint now, std::vector<Ended>* ended);
  absl::Status Begin(TimePoint now);
  absl::StatusOr<StagedProgress> Progress(TimePoint now);
  absl::Status CheckStagedLabels() const;
  std::string Unfinished(TimePoint now) const;
  void CommitAll();
  void Finish(const absl::Status& status, std::vector<Ended>* ended);

  ModelStates& models_;
  ConfigState& config_;
  const bool allow_labels_;
  std::deque<std::shared_ptr<Transaction>> queue_;  // the first is under way when `begun_`
  bool begun_ = false, stopped_ = false;
  // Of the one under way.
  TimePoint scans_until_ = TimePoint::min();  // see ProgressOfStaged
  bool waits_for_scans_ = false;
  std::set<std::string> touched_, unready_;  // since the last Progress; staged and not ready
  std::set<std::string> involved_;
};

}  // namespace floe::server
