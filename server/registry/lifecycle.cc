#include "server/registry/lifecycle.h"

#include <algorithm>
#include <utility>

#include "server/registry/model_events.h"
#include "server/registry/model_status.h"
#include "server/registry/staging.h"

namespace floe::server {

Lifecycle::Lifecycle(const std::vector<ModelConfig>& models, Options options)
    : options_(options), reloads_(&models_, &config_, options.allow_labels_for_unavailable) {
  config_.models = models;
  const CpuShares weights = CpuSharesOf(models);
  for (const ModelConfig& model : models)
    SetCurrent(&models_.Entry(model.name), std::make_shared<const ModelConfig>(model), weights);
}

void Lifecycle::Scanned(const std::string& model, int64_t ticket,
                        const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now) {
  for (auto it = scanning_.begin(); it != scanning_.end();)
    it = it->second == ticket ? scanning_.erase(it) : std::next(it);
  if (ModelState* state = models_.Find(model))
    changed_ |= NoteScanned(state, ticket, found, now, options_.times);
}

void Lifecycle::Loaded(const std::string& model, ServableId id, const absl::Status& status,
                       TimePoint now, const std::optional<FileIdentity>& identity) {
  if (ModelState* state = models_.Find(model))
    NoteLoaded(state, id, status, now, options_.times, identity);
  changed_ = true;
}

void Lifecycle::Unloaded(const std::string& model, ServableId id, const absl::Status& status) {
  if (ModelState* state = models_.Find(model)) NoteUnloaded(state, id, status);
  for (auto& [name, state] : models_.states) RetryRefused(&state);
  changed_ = true;
}

Actions Lifecycle::Step(TimePoint now, std::vector<Ended>* ended) {
  Actions actions;
  do {
    for (auto& [name, model] : models_.states) Reconcile(&model, now, &actions);
  } while (reloads_.Advance(now, ended));
  PutOffScans(&actions);
  std::erase_if(models_.states, [](const auto& named) { return named.second.Empty(); });
  changed_ |= !actions.loads.empty() || !actions.unloads.empty() || !ended->empty();
  actions.next = std::min(actions.next, reloads_.Next(now));
  return actions;
}

// A place is looked at once at a time, lest one that hangs take all threads there are for it. Those
// that have waited longest come first.
void Lifecycle::PutOffScans(Actions* actions) {
  std::stable_sort(actions->scans.begin(), actions->scans.end(),
                   [](const ScanAction& a, const ScanAction& b) { return a.due < b.due; });
  std::vector<ScanAction> now;
  for (ScanAction& scan : actions->scans) {
    if (scanning_.emplace(scan.base_path, scan.ticket).second) {
      now.push_back(std::move(scan));
    } else if (ModelState* model = models_.Find(scan.model)) {
      PutOffScan(model, scan.ticket);
    }
  }
  actions->scans = std::move(now);
}

bool Lifecycle::Settled() const {
  return std::all_of(models_.states.begin(), models_.states.end(),
                     [](const auto& named) { return IsSettled(named.second); });
}

}  // namespace floe::server
