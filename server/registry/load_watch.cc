#include "server/registry/load_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::server {

LoadWatch::Load::Load(LoadWatch* watch, const std::string& name, TimePoint start)
    : watch_(*watch), name_(name), start_(start) {
  MutexLock lock(watch_.mutex_);
  watch_.loads_.push_back(this);
}

LoadWatch::Load::~Load() {
  MutexLock lock(watch_.mutex_);
  watch_.loads_.remove(this);
}

void LoadWatch::Load::Enter(std::string stage) {
  MutexLock lock(watch_.mutex_);
  stage_ = std::move(stage);
}

std::vector<std::string> LoadWatch::Slow(TimePoint now) {
  std::vector<std::string> lines;
  MutexLock lock(mutex_);
  for (Load* const load : loads_) {
    const Duration taken = now - load->start_;
    if (taken < load->told_) continue;
    while (load->told_ <= taken) load->told_ *= 2;
    lines.push_back(absl::StrCat(load->name_, " is still being loaded after ",
                                 std::chrono::duration_cast<std::chrono::seconds>(taken).count(),
                                 " s: ", load->stage_));
  }
  return lines;
}

}  // namespace floe::server
