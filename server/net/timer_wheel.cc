// A timer lies in the slot of its tick, or further away in the slot of its round of ticks, from
// where it moves to its tick when that round begins.
#include "server/net/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace floe::server {

void Timer::Set(TimerWheel* wheel, TimePoint at) {
  Clear();
  if (at == TimePoint::max()) return;
  at_ = at;
  wheel->Insert(this);
}

void Timer::Clear() {
  if (next_ == nullptr) return;
  next_->previous_ = previous_;
  previous_->next_ = next_;
  next_ = previous_ = nullptr;
}

TimerWheel::TimerWheel(TimePoint now) : start_(now) {}

void TimerWheel::Insert(Timer* timer) {
  // A tick after its time, so that it never fires early.
  const int64_t tick = std::max(now_, TickOf(timer->at_) + 1);
  const bool near = tick / kSlots == now_ / kSlots;
  const auto index = static_cast<size_t>(near ? tick % kSlots : tick / kSlots % kSlots);
  Slot& slot = near ? near_[index] : far_[index];
  if (near) near_used_[index / 64] |= uint64_t{1} << (index % 64);
  timer->next_ = &slot.head;
  timer->previous_ = slot.head.previous_;
  slot.head.previous_->next_ = timer;
  slot.head.previous_ = timer;
}

// Of the round that begins. Those of a later turn of the far ring go back to where they were.
void TimerWheel::Refill() {
  Slot& slot = far_[static_cast<size_t>(now_ / kSlots % kSlots)];
  Timer* timer = slot.head.next_;
  slot.head.next_ = slot.head.previous_ = &slot.head;
  while (timer != &slot.head) {
    Timer* const next = timer->next_;
    Insert(timer);
    timer = next;
  }
}

void TimerWheel::Run(TimePoint now) {
  const int64_t last = TickOf(now);
  while (now_ <= last) {
    const auto index = static_cast<size_t>(now_ % kSlots);
    uint64_t& used = near_used_[index / 64];
    if (used >> (index % 64) == 0) {  // nothing up to the end of this word
      now_ = std::min(last + 1, now_ + 64 - static_cast<int64_t>(index % 64));
    } else {
      Slot& slot = near_[index];
      used &= ~(uint64_t{1} << (index % 64));
      ++now_;  // what is set meanwhile comes later
      if (now_ % kSlots == 0) Refill();
      while (!slot.empty()) {
        Timer* const timer = slot.head.next_;
        timer->Clear();
        timer->fire_();
      }
      continue;
    }
    if (now_ % kSlots == 0) Refill();
  }
}

TimePoint TimerWheel::Next() const {
  const auto at = [this](int64_t tick) { return start_ + tick * kTick; };
  const auto first = static_cast<size_t>(now_ % kSlots);
  for (size_t word = first / 64; word < near_used_.size(); ++word) {
    const uint64_t used =
        word == first / 64 ? near_used_[word] >> (first % 64) << (first % 64) : near_used_[word];
    if (used != 0)
      return at(now_ - static_cast<int64_t>(first) +
                static_cast<int64_t>(word * 64 + static_cast<size_t>(std::countr_zero(used))));
  }
  const int64_t round = now_ / kSlots;
  for (int64_t ahead = 1; ahead <= kSlots; ++ahead)
    if (!far_[static_cast<size_t>((round + ahead) % kSlots)].empty())
      return at((round + ahead) * kSlots);
  return TimePoint::max();
}

}  // namespace floe::server
