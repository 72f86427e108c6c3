// Lifecycle: what is to happen to all models and versions, decided from what was found, loaded and
// configured. No threads, files or clocks of its own: it gets what happened and when, and says
// what to do next.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"
#include "server/registry/model_events.h"
#include "server/registry/registry.h"
#include "server/registry/reloads.h"

namespace floe::server {

// Threading: one thread at a time.
class Lifecycle {
 public:
  struct Options {
    LifecycleTimes times;
    bool allow_labels_for_unavailable = false;
  };
  using Ended = Reloads::Ended;

  // `models` are valid (CheckModels).
  Lifecycle(const std::vector<ModelConfig>& models, Options options);
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  // What happened. Models and tickets that are gone are ignored.
  void Scanned(const std::string& model, int64_t ticket,
               const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now);
  void Loaded(const std::string& model, ServableId id, const absl::Status& status, TimePoint now,
              const std::optional<FileIdentity>& identity = {});
  void Unloaded(const std::string& model, ServableId id,
                const absl::Status& status = absl::OkStatus());

  // Other configurations; Step says how they went.
  Reloads& reloads() { return reloads_; }
  // How a change went that did not get as far as models.
  void NoteReload(const absl::Status& status) {
    config_.last_error = status;
    changed_ = true;
  }

  // What is to be done at `now`, each of it once, and which reloads have ended.
  Work Step(TimePoint now, std::vector<Ended>* ended);

  const ConfigState& config() const { return config_; }
  const ModelStates& models() const { return models_; }
  bool Settled() const;  // of all models
  // Whether something that can be seen from outside may have changed since the last call.
  bool TakeChanged() { return std::exchange(changed_, false); }

 private:
  void BeginScans(TimePoint now, Work* work);

  const Options options_;
  ConfigState config_;
  ModelStates models_;
  Reloads reloads_;
  std::map<std::string, int64_t> scanning_;  // tickets of scans under way by base_path
  bool changed_ = true;
};

}  // namespace floe::server
