// TaskPool: tasks that were answered, for the next requests, so that none is allocated in steady
// state. ApartList: whose requests are batched apart.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "server/batching/task.h"

namespace floe::server {

// Threading: any thread.
class TaskPool {
 public:
  explicit TaskPool(size_t most) : most_(most) { free_.reserve(most); }

  Task* Take() {
    {
      MutexLock lock(mutex_);
      if (!free_.empty()) {
        Task* const task = free_.back().release();
        free_.pop_back();
        return task;
      }
    }
    return std::make_unique<Task>().release();
  }
  // Drops what the task holds.
  void Give(Task* task) {
    *task = Task();
    std::unique_ptr<Task> owned(task);
    MutexLock lock(mutex_);
    if (free_.size() < most_) free_.push_back(std::move(owned));
  }

 private:
  const size_t most_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Task>> free_ ABSL_GUARDED_BY(mutex_);
};

// Callers whose requests failed, each for a second; of more than fit the oldest are forgotten.
// Threading: the caller locks.
class ApartList {
 public:
  void Add(uint64_t caller, TimePoint now) {
    Entry* place = &entries_[0];
    for (Entry& entry : entries_) {
      if (entry.caller == caller) {
        place = &entry;
        break;
      }
      if (entry.until < place->until) place = &entry;
    }
    last_until_ = now + kHowLong;
    *place = {caller, last_until_};
  }
  bool Has(uint64_t caller, TimePoint now) const {
    if (caller == 0 || now >= last_until_) return false;
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.caller == caller && now < entry.until;
    });
  }

 private:
  static constexpr Duration kHowLong = std::chrono::seconds(1);
  struct Entry {
    uint64_t caller = 0;
    TimePoint until = TimePoint::min();
  };
  std::array<Entry, 64> entries_;
  TimePoint last_until_ = TimePoint::min();
};

}  // namespace floe::server
