// Readiness: which names of the health service serve.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "server/health/health.h"

namespace floe::server {

// "model/<name>" serves when a version is available and nothing ails it. The overall names ("" and
// the services') serve when the server answers, not all available models are ailing, and every
// configured model has been available since it was configured. When not `strict`, one is enough.
// Threading: any thread.
class Readiness {
 public:
  // `health` outlives it.
  Readiness(HealthState* health, bool strict);

  // Of configured models, whether they have an available version now; nullopt: the model is gone.
  void Update(const std::map<std::string, std::optional<bool>>& available);
  // Models whose requests get no answers, and what it is: "makes no progress although requests
  // wait". Logs changes.
  void SetAiling(std::map<std::string, std::string> models);
  void SetAnswering(bool answering);  // whether the server as a whole does; false at first

 private:
  // The overall names, and those of these models.
  void Report(const std::set<std::string>& models) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  HealthState* const health_;
  const bool strict_;
  Mutex mutex_;
  std::map<std::string, bool> available_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> once_ ABSL_GUARDED_BY(mutex_);  // have been available
  std::map<std::string, std::string> ailing_ ABSL_GUARDED_BY(mutex_);
  bool answering_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
