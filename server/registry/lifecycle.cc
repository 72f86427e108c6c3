// Steps all models: applies what happened to them, advances the reloads, and hands out what is to
// be done.
#include "server/registry/lifecycle.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/registry/model_status.h"
#include "server/registry/staging.h"

namespace floe::server {

Lifecycle::Lifecycle(const std::vector<ModelConfig>& models, Options options)
    : options_(options), reloads_(&models_, &config_, options.allow_labels_for_unavailable) {
  config_.models = models;
  changes_.config = true;
  const CpuShares cpu_shares = CpuSharesOf(models);
  for (const ModelConfig& model : models)
    SetCurrent(&ModelNamed(model.name, &models_), std::make_shared<const ModelConfig>(model),
               cpu_shares);
  for (const auto& named : models_) Touch(named.second, true);
}

void Lifecycle::Touch(const ModelState& model, bool changed) {
  touched_.insert(model.name);
  if (changed) changes_.models.insert(model.name);
  if (IsSettled(model)) {
    unsettled_.erase(model.name);
  } else {
    unsettled_.insert(model.name);
  }
}

void Lifecycle::Scanned(const std::string& model, int64_t ticket, const ScanResult& result,
                        TimePoint now) {
  if (const auto scan = scanning_.find(ticket); scan != scanning_.end()) {
    scanned_places_.erase(scan->second);
    scanning_.erase(scan);
  }
  touched_.merge(hindered_);
  hindered_.clear();
  const auto it = models_.find(model);
  if (it == models_.end()) return;
  const bool changed = NoteScanned(&it->second, ticket, result, now, options_.times);
  Touch(it->second, changed);
}

void Lifecycle::FilesChanged(const std::set<std::string>& models, TimePoint now) {
  for (const std::string& name : models) {
    const auto it = models_.find(name);
    if (it == models_.end()) continue;
    NoteFilesChanged(&it->second, now);
    Touch(it->second, false);
  }
}

void Lifecycle::Loaded(const std::string& model, ServableId id, const absl::Status& status,
                       TimePoint now, const std::optional<FileIdentity>& identity) {
  const auto it = models_.find(model);
  if (it == models_.end()) return;
  NoteLoaded(&it->second, id, status, now, options_.times, identity);
  Touch(it->second, true);
}

void Lifecycle::Unloaded(const std::string& model, ServableId id, const absl::Status& status) {
  if (const auto it = models_.find(model); it != models_.end()) {
    NoteUnloaded(&it->second, id, status);
    Touch(it->second, true);
  }
  for (auto& [name, state] : models_)
    if (RetryRefused(&state)) Touch(state, true);
}

Work Lifecycle::Step(TimePoint now, std::vector<Ended>* ended) {
  Work work;
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    const std::string name = alarms_.begin()->second;
    touched_.insert(name);
    SetAlarm(name, TimePoint::max());
  }
  std::set<std::string> stepped;
  for (bool more = true; more;) {
    const std::set<std::string> names = std::exchange(touched_, {});
    for (const std::string& name : names)
      if (const auto it = models_.find(name); it != models_.end())
        StepModel(&it->second, now, &work);
    reloads_.Touched(names);
    stepped.insert(names.begin(), names.end());
    const size_t before = ended->size();
    more = reloads_.Advance(now, ended);
    for (size_t i = before; i < ended->size(); ++i) {
      const Ended& one = (*ended)[i];
      config_.Note({config_.generation, now, one.transaction->wanted.who, one.changes, one.status});
    }
    if (!more) break;
    for (const std::string& name : reloads_.involved())
      if (const auto it = models_.find(name); it != models_.end())
        Touch(it->second, ended->size() != before);
  }
  BeginScans(stepped, now, &work);
  for (const std::string& name : stepped) Forget(name);
  changes_.config |= !ended->empty();
  if (!alarms_.empty()) work.next = alarms_.begin()->first;
  work.next = std::min(work.next, reloads_.Next(now));
  return work;
}

void Lifecycle::StepModel(ModelState* model, TimePoint now, Work* work) {
  Work own;
  ++stepped_;
  Reconcile(model, now, &own);
  Touch(*model, !own.loads.empty() || !own.unloads.empty());
  touched_.erase(model->name);
  SetAlarm(model->name, own.next);
  std::move(own.loads.begin(), own.loads.end(), std::back_inserter(work->loads));
  std::move(own.unloads.begin(), own.unloads.end(), std::back_inserter(work->unloads));
}

// A place is scanned once at a time, lest one that hangs take all threads there are for it. Those
// that have waited longest come first.
void Lifecycle::BeginScans(const std::set<std::string>& models, TimePoint now, Work* work) {
  std::vector<std::pair<const ModelState*, Target*>> due;
  for (const std::string& name : models) {
    const auto it = models_.find(name);
    if (it == models_.end()) continue;
    for (std::optional<Target>* target : {&it->second.current, &it->second.staged}) {
      if (!*target || (*target)->scan_ticket != 0) continue;
      if ((*target)->next_scan <= now) {
        due.emplace_back(&it->second, &**target);
      } else if (const auto alarm = alarm_of_.find(name);
                 alarm == alarm_of_.end() || (*target)->next_scan < alarm->second) {
        SetAlarm(name, (*target)->next_scan);
      }
    }
  }
  std::stable_sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
    return a.second->next_scan < b.second->next_scan;
  });
  for (const auto& [model, target] : due) {
    const std::string& place = target->config().base_path;
    if (!scanned_places_.insert(place).second) {
      hindered_.insert(model->name);
      continue;
    }
    work->scans.push_back(BeginScan(*model, now, target));
    scanning_[target->scan_ticket] = place;
  }
}

void Lifecycle::SetAlarm(const std::string& model, TimePoint at) {
  if (const auto before = alarm_of_.find(model); before != alarm_of_.end()) {
    alarms_.erase({before->second, model});
    alarm_of_.erase(before);
  }
  if (at == TimePoint::max()) return;
  alarm_of_[model] = at;
  alarms_.insert({at, model});
}

// Of a model that is gone.
void Lifecycle::Forget(const std::string& model) {
  const auto it = models_.find(model);
  if (it == models_.end() || !it->second.Empty()) return;
  SetAlarm(model, TimePoint::max());
  unsettled_.erase(model);
  models_.erase(it);
}

}  // namespace floe::server
