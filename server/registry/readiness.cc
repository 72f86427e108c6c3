// Computes the health of all names from what is known of models, and reports it at once.
#include "server/registry/readiness.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

constexpr const char* kOverallNames[] = {"", "tensorflow.serving.PredictionService",
                                         "tensorflow.serving.ModelService", "PredictionService",
                                         "ModelService"};

ServingStatus StatusOf(bool serves) {
  return serves ? ServingStatus::kServing : ServingStatus::kNotServing;
}

}  // namespace

Readiness::Readiness(HealthState* health, bool strict) : health_(health), strict_(strict) {
  MutexLock lock(mutex_);
  Report();
}

void Readiness::SetModels(const std::map<std::string, bool>& available) {
  MutexLock lock(mutex_);
  for (const auto& [name, was] : available_) {
    if (available.count(name) != 0) continue;
    once_.erase(name);
    health_->Remove(absl::StrCat("model/", name));
  }
  available_ = available;
  for (const auto& [name, is] : available_)
    if (is) once_.insert(name);
  Report();
}

void Readiness::SetStuck(const std::set<std::string>& models) {
  MutexLock lock(mutex_);
  if (stuck_ == models) return;
  for (const std::string& name : models)
    if (stuck_.count(name) == 0)
      spdlog::error(
          "model '{}' makes no progress although requests wait; it is reported as not serving",
          name);
  for (const std::string& name : stuck_)
    if (models.count(name) == 0) spdlog::info("model '{}' makes progress again", name);
  stuck_ = models;
  Report();
}

void Readiness::SetAnswering(bool answering) {
  MutexLock lock(mutex_);
  answering_ = answering;
  Report();
}

void Readiness::Report() {
  std::map<std::string, ServingStatus> states;
  bool any_goes_on = stuck_.empty();  // those that are not available yet are another matter
  for (const auto& [name, available] : available_) {
    const bool serves = available && stuck_.count(name) == 0;
    states[absl::StrCat("model/", name)] = StatusOf(serves);
    any_goes_on |= serves;
  }
  const bool enough = once_.size() == available_.size() || (!strict_ && !once_.empty());
  for (const char* name : kOverallNames)
    states[name] = StatusOf(answering_ && enough && any_goes_on);
  health_->Set(states);
}

}  // namespace floe::server
