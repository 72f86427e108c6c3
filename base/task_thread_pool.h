// TaskThreadPool: threads for tasks that take their time, or for what is done again and again.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/threads.h"

namespace floe {

// Tasks start in the order they were posted; threads are started as they are needed, up to a bound.
// Threading: any thread.
class TaskThreadPool {
 public:
  // Called whenever no task waits; returns when to call it again though none has come. The pool has
  // one thread then.
  using Idle = std::function<TimePoint()>;

  // Nice ones are also told to the scheduler as batch work. They stay: what they allocate comes
  // from the same places again and again, while memory grows with every thread that comes and goes.
  TaskThreadPool(int max_threads, ThreadTraits traits, Idle idle = nullptr);
  ~TaskThreadPool();  // Stop()
  TaskThreadPool(const TaskThreadPool&) = delete;
  TaskThreadPool& operator=(const TaskThreadPool&) = delete;

  // Starts the first thread; RESOURCE_EXHAUSTED when the system gives none. Once.
  absl::Status Start();

  // Waits for Start. False, and the task is dropped, after Stop.
  bool Post(std::function<void()> task);
  // Tasks that have taken longer than so long, as those do that wait for storage that hangs, count
  // no more among those that the bound allows. Called now and then. Returns how many they are.
  size_t Relieve(TimePoint now, Duration longest);
  // Waits for tasks under way and drops the others. Not from a task.
  void Stop();

 private:
  static constexpr size_t kMostStuck = 256;

  absl::Status Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GrowFor(size_t tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();
  bool AwaitTask(TimePoint until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasTask();

  const size_t max_threads_;
  const ThreadTraits traits_;
  const Idle on_idle_;
  Mutex mutex_;
  CondVar posted_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t stuck_ ABSL_GUARDED_BY(mutex_) = 0;              // as of the last Relieve
  std::list<TimePoint> started_ ABSL_GUARDED_BY(mutex_);  // of the tasks under way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe
