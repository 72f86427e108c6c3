#include "server/registry/task_threads.h"

#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace floe::server {

TaskThreads::TaskThreads(int max_threads, ThreadTraits traits)
    : max_threads_(static_cast<size_t>(std::max(1, max_threads))), traits_(std::move(traits)) {}

TaskThreads::~TaskThreads() { Stop(); }

void TaskThreads::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    if (idle_ < tasks_.size() && threads_.size() < max_threads_) Grow();
  }
  posted_.NotifyOne();
}

// Where the system gives no more threads, those that are there do all the work.
void TaskThreads::Grow() {
  try {
    threads_.push_back(SpawnThread(traits_, [this] { Work(); }));
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
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
  for (std::thread& thread : threads) thread.join();
}

}  // namespace floe::server
