// Time as an interface, so that tests step it by hand.
#pragma once

#include <atomic>
#include <chrono>

namespace floe {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// Threading: any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  static const Clock& Steady();  // the process's monotonic clock
};

// Stands still until advanced. Threading: any thread.
class FakeClock : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(ticks_.load())); }
  void Advance(Duration by) { ticks_.fetch_add(by.count()); }

 private:
  std::atomic<Duration::rep> ticks_{Duration(std::chrono::hours(1)).count()};
};

}  // namespace floe
