// HealthService's knowledge: which names exist, whether they serve, and who wants to hear of
// changes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"

namespace floe::server {

// Numbers as in grpc.health.v1.
enum class ServingStatus : int { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// Names: "" (the whole server), the gRPC services' full names, TF Serving's short names, and
// "model/<name>". Threading: any thread. Watchers run on the thread that sets, once at registration
// and then for each change, in order per watcher. They may call Get, but nothing that notifies or
// registers (Set, Remove, Shutdown, Watch, Unwatch), which waits for the watchers that are running.
class HealthState {
 public:
  using Watcher = std::function<void(ServingStatus)>;

  void Set(const std::string& name, ServingStatus status) { Set({{name, status}}); }
  // All at once: a watcher that hears of one and asks for another is told the new state.
  void Set(const std::map<std::string, ServingStatus>& states);
  void Remove(const std::string& name);
  // All names not serving for good (draining); later Set calls are ignored.
  void Shutdown();
  std::optional<ServingStatus> Get(const std::string& name) const;

  // Unknown names may be watched (kServiceUnknown until they appear). Returns an id for Unwatch;
  // after Unwatch returns the watcher is not called.
  int64_t Watch(const std::string& name, const Watcher& watcher);
  void Unwatch(int64_t id);

 private:
  struct Entry {
    std::string name;
    Watcher watcher;
  };
  void Notify(const std::map<std::string, ServingStatus>& changed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(notify_mutex_);

  mutable Mutex mutex_;
  Mutex notify_mutex_;  // held while watchers run, so that each hears changes in order; taken
                        // before mutex_
  std::map<std::string, ServingStatus> states_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Entry> watchers_ ABSL_GUARDED_BY(notify_mutex_);
  int64_t next_id_ ABSL_GUARDED_BY(notify_mutex_) = 1;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
