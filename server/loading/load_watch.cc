// Keeps the stages of loads under way, and says which take long.
#include "server/loading/load_watch.h"

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

std::optional<LoadWatch::Progress> LoadWatch::Find(const std::string& name) const {
  MutexLock lock(mutex_);
  for (const Load* load : loads_)
    if (load->name_ == name) return Progress{load->stage_, load->start_};
  return std::nullopt;
}

std::vector<std::string> LoadWatch::Slow(TimePoint now) {
  std::vector<std::string> lines;
  MutexLock lock(mutex_);
  for (Load* const load : loads_) {
    const Duration taken = now - load->start_;
    if (taken < load->logged_) continue;
    while (load->logged_ <= taken) load->logged_ *= 2;
    lines.push_back(absl::StrCat(load->name_, " is still being loaded after ",
                                 std::chrono::duration_cast<std::chrono::seconds>(taken).count(),
                                 " s: ", load->stage_));
  }
  return lines;
}

std::string LoadName(const std::string& model, int64_t version) {
  return absl::StrCat("model '", model, "' version ", version);
}

}  // namespace floe::server
