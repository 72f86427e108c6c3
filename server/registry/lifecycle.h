// Lifecycle: what is to happen to all models and versions, decided from what was found, loaded and
// configured. No threads, files or clocks of its own: it gets what happened and when, and says
// what to do next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"
#include "server/registry/model_events.h"
#include "server/registry/registry.h"
#include "server/registry/reloads.h"

namespace floe::server {

// Of many models only those are looked at to which something has happened, or whose time has come.
// Threading: one thread at a time. One class: what happens comes in, what is to be done goes out,
// and the rest shows its state.
class Lifecycle {
 public:
  struct Options {
    LifecycleTimes times;
    bool allow_labels_for_unavailable = false;
  };
  // What can be seen from outside, and may have changed.
  struct Changes {
    bool config = false;           // or how the last reload went
    std::set<std::string> models;  // names; some may be gone
    bool any() const { return config || !models.empty(); }
  };
  using Ended = Reloads::Ended;

  // `models` are valid (CheckModels).
  Lifecycle(const std::vector<ModelConfig>& models, Options options);
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  // What happened. Models and tickets that are gone are ignored.
  void Scanned(const std::string& model, int64_t ticket, const ScanResult& result, TimePoint now);
  // By the watches of these.
  void FilesChanged(const std::set<std::string>& models, TimePoint now);
  void Loaded(const std::string& model, ServableId id, const absl::Status& status, TimePoint now,
              const std::optional<FileIdentity>& identity = {});
  void Unloaded(const std::string& model, ServableId id,
                const absl::Status& status = absl::OkStatus());

  // Other configurations; Step says how they went.
  Reloads& reloads() { return reloads_; }
  // How a change went that did not get as far as models.
  void NoteReload(const absl::Status& status, const std::string& who, TimePoint now) {
    config_.last_error = status;
    if (!status.ok()) config_.Note({config_.generation, now, who, "", status});
    changes_.config = true;
  }

  // What is to be done at `now`, each of it once, and which reloads have ended.
  Work Step(TimePoint now, std::vector<Ended>* ended);

  const ConfigState& config() const { return config_; }
  const ModelStates& models() const { return models_; }
  bool Settled() const { return unsettled_.empty(); }            // all models are
  Changes TakeChanges() { return std::exchange(changes_, {}); }  // since the last call
  int64_t stepped() const { return stepped_; }  // how often a model was looked at, for tests

 private:
  void Touch(const ModelState& model, bool changed);
  void StepModel(ModelState* model, TimePoint now, Work* work);
  void BeginScans(const std::set<std::string>& models, TimePoint now, Work* work);
  void SetAlarm(const std::string& model, TimePoint at);  // max(): none
  void Forget(const std::string& model);

  const Options options_;
  ConfigState config_;
  ModelStates models_;
  Reloads reloads_;
  std::set<std::string> scanned_places_;     // base_paths that scans are in
  std::map<int64_t, std::string> scanning_;  // the same by the scans' tickets
  Changes changes_;
  int64_t stepped_ = 0;
  std::set<std::string> touched_;    // to be stepped
  std::set<std::string> unsettled_;  // not IsSettled
  std::set<std::string> hindered_;   // whose place another scan is in
  // When models are to be stepped though nothing happens to them.
  std::set<std::pair<TimePoint, std::string>> alarms_;
  std::map<std::string, TimePoint> alarm_of_;
};

}  // namespace floe::server
