// TimerWheel: many timers, most of which are cleared before they fire.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/clock.h"

namespace floe::server {

class TimerWheel;

// Fires once, on the thread that runs the wheel, within a tick after its time. Owned by whoever set
// it, and cleared with its end. Threading: the wheel's thread.
class Timer {
 public:
  explicit Timer(std::function<void()> fire) : fire_(std::move(fire)) {}
  ~Timer() { Clear(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces the time that was set before; TimePoint::max() clears it.
  void Set(TimerWheel* wheel, TimePoint at);
  void Clear();
  bool is_set() const { return next_ != nullptr; }

 private:
  friend class TimerWheel;
  const std::function<void()> fire_;
  TimePoint at_ = TimePoint::max();
  Timer *next_ = nullptr, *previous_ = nullptr;  // a ring of those of the same slot
};

// Two rings of slots: ticks of 4 ms for the next seconds, and one of such seconds for what is
// later. Setting and clearing cost the same for any number of timers. Threading: one thread.
class TimerWheel {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(4);

  explicit TimerWheel(TimePoint now);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Fires what is due.
  void Run(TimePoint now);
  // When to call Run next; max(): no timer is set.
  TimePoint Next() const;

 private:
  friend class Timer;
  static constexpr int64_t kSlots = 1024;
  // The head of a ring.
  struct Slot {
    Timer head{nullptr};
    Slot() { head.next_ = head.previous_ = &head; }
    bool empty() const { return head.next_ == &head; }
  };

  int64_t TickOf(TimePoint at) const { return (at - start_) / kTick; }
  void Insert(Timer* timer);
  void Refill();

  const TimePoint start_;
  int64_t now_ = 0;  // all ticks before this one have been run
  std::array<Slot, kSlots> near_, far_;
  std::array<uint64_t, kSlots / 64> near_used_ = {};  // slots that may hold timers
};

}  // namespace floe::server
