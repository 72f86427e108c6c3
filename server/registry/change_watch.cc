// One watcher for all models. What it cannot watch is scanned every time, as without it.
#include "server/registry/change_watch.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

namespace floe::server {

ChangeWatch::ChangeWatch(Duration poll, WatcherFunction make_watcher)
    : poll_(poll), make_watcher_(std::move(make_watcher)) {}

void ChangeWatch::Start() {
  if (poll_ <= Duration::zero() || poll_ >= LifecycleTimes().rescan) return;
  auto watcher = make_watcher_ ? make_watcher_() : FileWatcher::Create();
  if (!watcher.ok()) return WarnOfScans(watcher.status());
  watcher_ = *std::move(watcher);
  next_ = TimePoint::min();
}

bool ChangeWatch::Watch(const ScanAction& action) {
  if (action.watch == nullptr || watcher_ == nullptr) return false;
  std::vector<std::string> paths = {action.base_path};
  for (const auto& [version, file] : action.versions.loaded_files) paths.push_back(file);
  const absl::Status status = watcher_->Watch(action.model, paths, action.watch.get());
  if (absl::IsResourceExhausted(status)) WarnOfScans(status);
  return status.ok();
}

std::set<std::string> ChangeWatch::TakeChanged(TimePoint now, bool at_once) {
  if (watcher_ == nullptr || (now < next_ && !at_once)) return {};
  if (now >= next_) next_ = now + poll_;
  return watcher_->TakeChanged();
}

void ChangeWatch::WarnOfScans(const absl::Status& why) {
  if (warned_.exchange(true)) return;
  spdlog::warn("some base_paths are scanned every {} s although nothing changes there: {}",
               std::chrono::duration_cast<std::chrono::seconds>(poll_).count(),
               std::string(why.message()));
}

}  // namespace floe::server
