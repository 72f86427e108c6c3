// Lifecycle: what is to happen to all models and versions, decided from what was found, loaded and
// configured. No threads, files or clocks of its own: it is told what happened and when, and says
// what to do next.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"
#include "server/registry/model_entry.h"
#include "server/registry/registry.h"
#include "server/registry/transaction.h"

namespace floe::server {

// Threading: one thread at a time.
class Lifecycle {
 public:
  struct Options {
    LifecycleTimes times;
    bool allow_labels_for_unavailable = false;
  };
  struct Ended {
    std::shared_ptr<Transaction> transaction;
    absl::Status status;
    std::string changes;  // DescribeChanges; of one that succeeded
  };

  // `models` are valid (CheckModels).
  Lifecycle(const std::vector<ModelConfig>& models, Options options);

  // What happened. Models and tickets that are gone are ignored.
  void Scanned(const std::string& model, int64_t ticket,
               const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now);
  void Loaded(const std::string& model, ServableId id, const absl::Status& status, TimePoint now,
              const std::optional<FileIdentity>& identity = {});
  void Unloaded(const std::string& model, ServableId id,
                const absl::Status& status = absl::OkStatus());

  // Asks for another configuration; Step says how it went. One is made after the other.
  void Reload(std::shared_ptr<Transaction> wanted) { reloads_.push_back(std::move(wanted)); }

  // Reloads that have not ended, and all that come now, end with UNAVAILABLE.
  void StopReloading() { reloading_stopped_ = true; }
  // Lets go of reloads that have not ended.
  void DropReloads() { reloads_.clear(); }

  // How a change went that did not get as far as models.
  void NoteReload(const absl::Status& status) {
    config_.last_error = status;
    changed_ = true;
  }

  // What is to be done at `now`, each action once, and which reloads have ended.
  Actions Step(TimePoint now, std::vector<Ended>* ended);

  const ConfigState& config() const { return config_; }
  const std::map<std::string, std::unique_ptr<ModelEntry>>& models() const { return models_; }
  bool Settled() const;  // of all models
  // Whether something that can be seen from outside may have changed since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  ModelEntry* Find(const std::string& name);
  void PutOffScans(Actions* actions);
  ModelEntry& EntryOf(const std::string& name);
  void EndLateReloads(TimePoint now, std::vector<Ended>* ended);
  bool AdvanceReload(TimePoint now, std::vector<Ended>* ended);
  absl::Status Begin(TimePoint now);
  absl::StatusOr<ModelEntry::Progress> Progress(TimePoint now) const;
  absl::Status CheckStagedLabels() const;
  std::string Unfinished(TimePoint now) const;
  void Commit();
  void Finish(const absl::Status& status, std::vector<Ended>* ended);

  const Options options_;
  int64_t next_id_ = 1;
  ConfigState config_;
  std::map<std::string, std::unique_ptr<ModelEntry>> models_;
  std::map<std::string, int64_t> scanning_;           // tickets of scans under way by base_path
  std::deque<std::shared_ptr<Transaction>> reloads_;  // the first is under way when `reloading_`
  bool reloading_ = false;
  TimePoint scans_until_ = TimePoint::min();  // of the reload under way: see StagedProgress
  bool reloading_stopped_ = false;
  bool changed_ = true;
};

// INVALID_ARGUMENT, one line per mistake: models without a name or path, names given twice,
// policies that ask for nothing.
absl::Status CheckModels(const std::vector<ModelConfig>& models);

}  // namespace floe::server
