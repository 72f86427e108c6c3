// Threads that take tasks in order; more are started while tasks wait and none is idle.
#include "base/task_thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace floe {

TaskThreadPool::TaskThreadPool(int max_threads, ThreadTraits traits, Idle idle)
    : max_threads_(static_cast<size_t>(std::max(1, max_threads))),
      traits_(std::move(traits)),
      on_idle_(std::move(idle)) {}

TaskThreadPool::~TaskThreadPool() { Stop(); }

bool TaskThreadPool::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    tasks_.push_back(std::move(task));
    if (!threads_.empty()) GrowFor(1);
  }
  posted_.NotifyOne();
  return true;
}

// Where the system gives no more threads, those that are there do all the work.
void TaskThreadPool::GrowFor(size_t tasks) {
  for (; tasks > 0 && idle_ < tasks_.size() && threads_.size() < max_threads_ + stuck_; --tasks)
    if (!Grow().ok()) return;
}

size_t TaskThreadPool::Relieve(TimePoint now, Duration longest) {
  MutexLock lock(mutex_);
  const auto stuck = std::count_if(started_.begin(), started_.end(),
                                   [&](TimePoint started) { return now - started >= longest; });
  stuck_ = std::min(static_cast<size_t>(stuck), kMostStuck);
  if (!threads_.empty() && !stopping_) GrowFor(tasks_.size());
  return static_cast<size_t>(stuck);
}

absl::Status TaskThreadPool::Start() {
  MutexLock lock(mutex_);
  return Grow();
}

absl::Status TaskThreadPool::Grow() {
  FLOE_ASSIGN_OR_RETURN(std::thread thread, TrySpawnThread(traits_, [this] { Work(); }));
  threads_.push_back(std::move(thread));
  return absl::OkStatus();
}

// Until there is a task, or the end. False: the time has come.
bool TaskThreadPool::AwaitTask(TimePoint until) {
  bool woken = true;
  ++idle_;
  while (woken && tasks_.empty() && !stopping_) {
    if (until == TimePoint::max()) {
      posted_.Wait(mutex_);
    } else {
      woken = posted_.WaitUntil(mutex_, until);
    }
  }
  --idle_;
  return !tasks_.empty() || stopping_;
}

bool TaskThreadPool::HasTask() {
  MutexLock lock(mutex_);
  return !tasks_.empty() || stopping_;
}

void TaskThreadPool::Work() {
  const sched_param none = {};
  if (traits_.nice > 0) (void)sched_setscheduler(0, SCHED_BATCH, &none);
  for (;;) {
    std::function<void()> task;
    std::list<TimePoint>::iterator started;
    const TimePoint until = on_idle_ && !HasTask() ? on_idle_() : TimePoint::max();
    {
      MutexLock lock(mutex_);
      if (!AwaitTask(until)) continue;
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      started = started_.insert(started_.end(), Clock::Steady().Now());
    }
    task();
    task = nullptr;
    MutexLock lock(mutex_);
    started_.erase(started);
  }
}

void TaskThreadPool::Stop() {
  std::vector<std::thread> threads;
  std::deque<std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    dropped.swap(tasks_);
  }
  posted_.NotifyAll();
  dropped.clear();  // who waits for one of them need not wait for those under way
  for (std::thread& thread : threads) thread.join();
}

}  // namespace floe
