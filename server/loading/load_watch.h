// LoadWatch: how far loads are, for those who wonder where a model stays.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Threading: any thread.
class LoadWatch {
 public:
  // One load, which ends with this. Outlived by the watch. Threading: one thread.
  class Load {
   public:
    Load(LoadWatch* watch, const std::string& name, TimePoint start);
    ~Load();
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    void Enter(std::string stage);  // "warm-up"

   private:
    friend class LoadWatch;
    LoadWatch& watch_;
    const std::string name_;
    const TimePoint start_;
    std::string stage_ = "it has begun";  // these two under the watch's mutex
    Duration logged_ = kSlowAfter;
  };
  static constexpr Duration kSlowAfter = std::chrono::seconds(10);

  // A line for each load that has taken this timeout, twice, four times ... as long since it was
  // logged last.
  std::vector<std::string> Slow(TimePoint now);
  struct Progress {
    std::string stage;
    TimePoint start;
  };
  // Of the load of that name; none: it is not under way.
  std::optional<Progress> Find(const std::string& name) const;

 private:
  mutable Mutex mutex_;
  std::list<Load*> loads_ ABSL_GUARDED_BY(mutex_);
};

// "model 'm' version 2"
std::string LoadName(const std::string& model, int64_t version);

}  // namespace floe::server
