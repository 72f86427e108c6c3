// Steps all models: applies what happened to them, advances the reloads, and hands out what is to
// be done.
#include "server/registry/lifecycle.h"

#include <algorithm>
#include <utility>

#include "server/registry/model_status.h"
#include "server/registry/staging.h"

namespace floe::server {

Lifecycle::Lifecycle(const std::vector<ModelConfig>& models, Options options)
    : options_(options), reloads_(&models_, &config_, options.allow_labels_for_unavailable) {
  config_.models = models;
  const CpuShares cpu_shares = CpuSharesOf(models);
  for (const ModelConfig& model : models)
    SetCurrent(&ModelNamed(model.name, &models_), std::make_shared<const ModelConfig>(model),
               cpu_shares);
}

void Lifecycle::Scanned(const std::string& model, int64_t ticket,
                        const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now) {
  std::erase_if(scanning_, [ticket](const auto& scan) { return scan.second == ticket; });
  if (const auto it = models_.find(model); it != models_.end())
    changed_ |= NoteScanned(&it->second, ticket, found, now, options_.times);
}

void Lifecycle::Loaded(const std::string& model, ServableId id, const absl::Status& status,
                       TimePoint now, const std::optional<FileIdentity>& identity) {
  if (const auto it = models_.find(model); it != models_.end())
    NoteLoaded(&it->second, id, status, now, options_.times, identity);
  changed_ = true;
}

void Lifecycle::Unloaded(const std::string& model, ServableId id, const absl::Status& status) {
  if (const auto it = models_.find(model); it != models_.end())
    NoteUnloaded(&it->second, id, status);
  for (auto& [name, state] : models_) RetryRefused(&state);
  changed_ = true;
}

Work Lifecycle::Step(TimePoint now, std::vector<Ended>* ended) {
  Work work;
  do {
    for (auto& [name, model] : models_) Reconcile(&model, now, &work);
  } while (reloads_.Advance(now, ended));
  BeginScans(now, &work);
  std::erase_if(models_, [](const auto& named) { return named.second.Empty(); });
  changed_ |= !work.loads.empty() || !work.unloads.empty() || !ended->empty();
  work.next = std::min(work.next, reloads_.Next(now));
  return work;
}

// A place is scanned once at a time, lest one that hangs take all threads there are for it. Those
// that have waited longest come first.
void Lifecycle::BeginScans(TimePoint now, Work* work) {
  std::vector<std::pair<const ModelState*, Target*>> due;
  for (auto& [name, model] : models_) {
    for (std::optional<Target>* target : {&model.current, &model.staged}) {
      if (!*target || (*target)->scan_ticket != 0) continue;
      if ((*target)->next_scan <= now) {
        due.emplace_back(&model, &**target);
      } else {
        work->next = std::min(work->next, (*target)->next_scan);
      }
    }
  }
  std::stable_sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
    return a.second->next_scan < b.second->next_scan;
  });
  for (const auto& [model, target] : due) {
    const auto [place, free] = scanning_.emplace(target->config().base_path, 0);
    if (!free) continue;
    work->scans.push_back(BeginScan(*model, target));
    place->second = target->scan_ticket;
  }
}

bool Lifecycle::Settled() const {
  return std::all_of(models_.begin(), models_.end(),
                     [](const auto& named) { return IsSettled(named.second); });
}

}  // namespace floe::server
