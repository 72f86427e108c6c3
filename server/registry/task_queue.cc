// A list of tasks under a mutex, taken as a whole.
#include "server/registry/task_queue.h"

#include <utility>

namespace floe::server {

bool TaskQueue::Post(Task task) {
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.NotifyAll();
  return true;
}

std::vector<TaskQueue::Task> TaskQueue::Take(TimePoint deadline) {
  std::vector<Task> taken;
  MutexLock lock(mutex_);
  while (tasks_.empty() && !closed_) {
    if (deadline == TimePoint::max()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline)) {
      break;
    }
  }
  taken.swap(tasks_);
  return taken;
}

void TaskQueue::Close() {
  std::vector<Task> dropped;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(tasks_);
  }
  changed_.NotifyAll();
}

bool TaskQueue::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace floe::server
