#include "server/registry/task_threads.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace floe::server {

TaskThreads::TaskThreads(int max_threads, ThreadTraits traits)
    : max_threads_(static_cast<size_t>(std::max(1, max_threads))), traits_(std::move(traits)) {}

TaskThreads::~TaskThreads() { Stop(); }

void TaskThreads::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    const bool more = !threads_.empty() && threads_.size() < max_threads_;
    // Where the system gives no more threads, those that are there do all the work.
    if (more && idle_ < tasks_.size()) Grow().IgnoreError();
  }
  posted_.NotifyOne();
}

absl::Status TaskThreads::Start() {
  MutexLock lock(mutex_);
  return Grow();
}

absl::Status TaskThreads::Grow() {
  FLOE_ASSIGN_OR_RETURN(std::thread thread, TrySpawnThread(traits_, [this] { Work(); }));
  threads_.push_back(std::move(thread));
  return absl::OkStatus();
}

void TaskThreads::Work() {
  const sched_param none = {};
  if (traits_.nice > 0) (void)sched_setscheduler(0, SCHED_BATCH, &none);
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      ++idle_;
      while (tasks_.empty() && !stopping_) posted_.Wait(mutex_);
      --idle_;
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void TaskThreads::Stop() {
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

}  // namespace floe::server
