#include "server/registry/task_threads.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace floe::server {

TaskThreads::TaskThreads(int max_threads, std::string name)
    : max_threads_(static_cast<size_t>(std::max(1, max_threads))), name_(std::move(name)) {}

TaskThreads::~TaskThreads() { Stop(); }

void TaskThreads::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    if (idle_ < tasks_.size() && threads_.size() < max_threads_)
      threads_.emplace_back([this] { Work(); });
  }
  posted_.NotifyOne();
}

void TaskThreads::Work() {
  pthread_setname_np(pthread_self(), name_.c_str());
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
