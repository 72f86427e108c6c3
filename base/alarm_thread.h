// AlarmThread: one thread that calls many back, each at the time that it asked for.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe {

class Alarm;

// In steady time. Threading: any thread. Outlives its alarms.
class AlarmThread {
 public:
  explicit AlarmThread(std::string name) : name_(std::move(name)) {}
  ~AlarmThread();
  AlarmThread(const AlarmThread&) = delete;
  AlarmThread& operator=(const AlarmThread&) = delete;

 private:
  friend class Alarm;
  using Alarms = std::set<std::pair<TimePoint, Alarm*>>;

  void Add(Alarm* alarm);
  void Remove(Alarm* alarm);
  void Set(Alarm* alarm, TimePoint at);
  void Work();

  const std::string name_;
  Mutex mutex_;
  CondVar changed_;
  Alarms alarms_ ABSL_GUARDED_BY(mutex_);  // all of them
  const Alarm* ringing_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // from the first alarm on
};

class Alarm {
 public:
  // `ring` runs on the thread, and should be short: it holds up the other alarms. Throws
  // std::system_error where the thread cannot be started.
  Alarm(std::shared_ptr<AlarmThread> thread, std::function<void()> ring);
  ~Alarm() { Stop(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // It rings once, then or soon after; the last call counts. max(): not at all, as at first. Any
  // thread, also within `ring` and with any lock held; it takes no memory.
  void Set(TimePoint at) { thread_->Set(this, at); }
  // It does not ring any more, whatever it is set to. Waits while it rings. Not within `ring`, nor
  // with a lock that `ring` takes.
  void Stop() { thread_->Remove(this); }

 private:
  friend class AlarmThread;
  const std::shared_ptr<AlarmThread> thread_;
  const std::function<void()> ring_;
  TimePoint at_ = TimePoint::max();  // guarded by the thread's lock
};

}  // namespace floe
