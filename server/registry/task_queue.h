// TaskQueue: what other threads have one thread do.
#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Threading: any thread posts, one takes.
class TaskQueue {
 public:
  using Task = std::function<void()>;

  // False, and the task is dropped, after Close.
  bool Post(Task task);
  // Waits until there is something or `deadline` has come; max(): only the former. Empty also after
  // Close.
  std::vector<Task> Take(TimePoint deadline);
  void Close();
  bool closed() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
