#include "base/alarm_thread.h"

#include "base/threads.h"

namespace floe {

AlarmThread::~AlarmThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    if (!thread_.joinable()) return;
  }
  thread_.join();
}

void AlarmThread::Add(Alarm* alarm) {
  MutexLock lock(mutex_);
  if (!thread_.joinable()) thread_ = SpawnThread({name_, 0, {}}, [this] { Work(); });
  alarms_.insert({TimePoint::max(), alarm});
}

void AlarmThread::Remove(Alarm* alarm) {
  MutexLock lock(mutex_);
  alarms_.erase({alarm->at_, alarm});  // first: it may set itself while it rings
  while (ringing_ == alarm) changed_.Wait(mutex_);
}

void AlarmThread::Set(Alarm* alarm, TimePoint at) {
  MutexLock lock(mutex_);
  auto node = alarms_.extract({alarm->at_, alarm});
  if (node.empty()) return;  // it has been stopped
  node.value().first = alarm->at_ = at;
  alarms_.insert(std::move(node));
  if (alarms_.begin()->second == alarm) changed_.NotifyAll();
}

void AlarmThread::Work() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const auto first = alarms_.begin();
    const TimePoint at = first == alarms_.end() ? TimePoint::max() : first->first;
    if (at == TimePoint::max()) {
      changed_.Wait(mutex_);
    } else if (at > Clock::Steady().Now()) {
      changed_.WaitUntil(mutex_, at);
    } else {
      Alarm* const alarm = first->second;
      auto node = alarms_.extract(first);
      node.value().first = alarm->at_ = TimePoint::max();
      alarms_.insert(std::move(node));
      ringing_ = alarm;
      mutex_.Unlock();
      alarm->ring_();
      mutex_.Lock();
      ringing_ = nullptr;
      changed_.NotifyAll();
    }
  }
}

Alarm::Alarm(std::shared_ptr<AlarmThread> thread, std::function<void()> ring)
    : thread_(std::move(thread)), ring_(std::move(ring)) {
  thread_->Add(this);
}

}  // namespace floe
