// ChangeWatch: says whose base_path is worth a scan, where the system tells what changes there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file_watcher.h"
#include "server/registry/model_events.h"

namespace floe::server {

// An error: the system tells nothing.
using WatcherFunction = std::function<absl::StatusOr<std::shared_ptr<FileWatcher>>()>;

// Threading: Watch any thread, the others one at a time.
class ChangeWatch {
 public:
  // `poll`: between two scans; 0: there is nothing to watch for.
  ChangeWatch(Duration poll, WatcherFunction make_watcher);

  // Before any other call. Without a watcher, which it logs, nothing is watched.
  void Start();
  // What a scan for this action depends on, from now on. False: it is not watched. It takes as long
  // as a scan may.
  bool Watch(const ScanAction& action);
  // The models whose files may have changed, after every `poll`; none in between, except `at_once`.
  std::set<std::string> TakeChanged(TimePoint now, bool at_once);
  TimePoint next() const { return next_; }  // when to ask for them

 private:
  void WarnOfScans(const absl::Status& why);

  const Duration poll_;
  const WatcherFunction make_watcher_;
  std::shared_ptr<FileWatcher> watcher_;
  std::atomic<bool> warned_{false};
  TimePoint next_ = TimePoint::max();
};

}  // namespace floe::server
