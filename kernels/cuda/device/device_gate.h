// DeviceGate: whose run a device does next, where models compete for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::cuda {

// Lets at most kTogether runs onto a device at the same time: copies of one overlap with the
// kernels of the other, and more would only wait inside the device. The next is of the user whose
// time there, divided by its shares, is the least; of one user, who came first. A run's time is
// what it adds to the device's busy time. A run never waits while there is room. Who was idle gets
// no credit for it. A user that is to get its share has kTogether + 1 turns, so that one waits
// whenever others end.
// Threading: any thread.
class DeviceGate {
 public:
  static constexpr int kTogether = 2;

  // One model. Outlives its runs.
  class User {
   public:
    explicit User(int64_t shares) : shares_(shares) {}

    // Of its runs on any device: those that failed there and were computed by the CPU.
    int64_t answered_by_cpu() const { return answered_by_cpu_.load(std::memory_order_relaxed); }
    void CountAnsweredByCpu() { answered_by_cpu_.fetch_add(1, std::memory_order_relaxed); }

   private:
    friend class DeviceGate;
    const int64_t shares_;
    double used_ = 0;  // seconds divided by shares; guarded by the gate's mutex
    int active_ = 0;   // turns that wait or run
    std::atomic<int64_t> answered_by_cpu_{0};
  };

  // One run, from Ask to Leave.
  class Turn {
   private:
    friend class DeviceGate;
    User* user_ = nullptr;
    bool granted_ = false;
    TimePoint since_ = TimePoint::min();
  };

  explicit DeviceGate(const Clock* clock = &Clock::Steady()) : clock_(clock) {}

  // The three steps of a run. `turn` and `user` live until Leave.
  void Ask(User* user, Turn* turn);
  void Await(Turn* turn);  // until it may run
  void Leave(Turn* turn);

  bool IsGranted(const Turn& turn) const;
  size_t waiting() const;

 private:
  void Grant() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<Turn*> waiting_ ABSL_GUARDED_BY(mutex_);  // in the order in which they came
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  double now_ ABSL_GUARDED_BY(mutex_) = 0;  // what the last one that was let in had used
  TimePoint last_left_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
};

// Whose runs this thread makes, until the end of its scope. Without one they are let in at once.
class ScopedDeviceUser {
 public:
  explicit ScopedDeviceUser(DeviceGate::User* user);
  ~ScopedDeviceUser();
  ScopedDeviceUser(const ScopedDeviceUser&) = delete;
  ScopedDeviceUser& operator=(const ScopedDeviceUser&) = delete;

  static DeviceGate::User* Current();

 private:
  DeviceGate::User* const before_;
};

// A turn of this thread's user, from the moment it may run to the end of the scope.
class ScopedDeviceTurn {
 public:
  explicit ScopedDeviceTurn(DeviceGate* gate);
  ~ScopedDeviceTurn();
  ScopedDeviceTurn(const ScopedDeviceTurn&) = delete;
  ScopedDeviceTurn& operator=(const ScopedDeviceTurn&) = delete;

 private:
  DeviceGate* const gate_;  // null: there is no user
  DeviceGate::Turn turn_;
};

}  // namespace floe::cuda
