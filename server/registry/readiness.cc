// Computes the health of all names from what is known of models, and reports it at once.
#include "server/registry/readiness.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

constexpr const char* kOverallNames[] = {"",
                                         "tensorflow.serving.PredictionService",
                                         "tensorflow.serving.ModelService",
                                         "PredictionService",
                                         "ModelService",
                                         "inference.GRPCInferenceService"};

ServingStatus StatusOf(bool serves) {
  return serves ? ServingStatus::kServing : ServingStatus::kNotServing;
}

}  // namespace

Readiness::Readiness(HealthState* health, bool strict) : health_(health), strict_(strict) {
  MutexLock lock(mutex_);
  Report({});
}

void Readiness::Update(const std::map<std::string, std::optional<bool>>& available) {
  MutexLock lock(mutex_);
  std::set<std::string> models;
  for (const auto& [name, is] : available) {
    if (!is.has_value()) {
      once_.erase(name);
      if (available_.erase(name) != 0) health_->Remove(absl::StrCat("model/", name));
      continue;
    }
    available_[name] = *is;
    if (*is) once_.insert(name);
    models.insert(name);
  }
  Report(models);
}

void Readiness::SetAiling(std::map<std::string, std::string> models) {
  MutexLock lock(mutex_);
  if (ailing_ == models) return;
  std::set<std::string> changed;
  for (const auto& [name, what] : models) {
    const auto before = ailing_.find(name);
    if (before != ailing_.end() && before->second == what) continue;
    spdlog::error("model '{}' {}; it is reported as not serving", name, what);
    changed.insert(name);
  }
  for (const auto& [name, what] : ailing_) {
    if (models.count(name) != 0) continue;
    spdlog::info("model '{}' serves again: it was one that {}", name, what);
    changed.insert(name);
  }
  ailing_ = std::move(models);
  Report(changed);
}

void Readiness::SetAnswering(bool answering) {
  MutexLock lock(mutex_);
  answering_ = answering;
  Report({});
}

void Readiness::Report(const std::set<std::string>& models) {
  const auto serves = [this](const auto& model) ABSL_NO_THREAD_SAFETY_ANALYSIS {  // it is locked
    return model.second && ailing_.count(model.first) == 0;
  };
  std::map<std::string, ServingStatus> states;
  for (const std::string& name : models)
    if (const auto it = available_.find(name); it != available_.end())
      states[absl::StrCat("model/", name)] = StatusOf(serves(*it));
  // Those that are not available yet are another matter.
  const bool any_goes_on =
      ailing_.empty() || std::any_of(available_.begin(), available_.end(), serves);
  const bool enough = once_.size() == available_.size() || (!strict_ && !once_.empty());
  for (const char* name : kOverallNames)
    states[name] = StatusOf(answering_ && enough && any_goes_on);
  health_->Set(states);
}

}  // namespace floe::server
