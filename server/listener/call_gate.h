// CallGate: the calls in progress of a server that may stop, and the replies that it is sending.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Which connections have a reply in progress, so that something else can be sent on the others.
// Connections are counted by their peers' ports, several in one slot. Those of unix sockets have
// no port and share a slot. Threading: any thread.
class ReplyCount {
 public:
  // `port`: 0 for unix sockets.
  static size_t SlotOf(uint16_t port) { return port == 0 ? 0 : 1 + port % (kSlots - 1); }

  // Before the transport gets the reply, and once it has written all of it or given it up.
  void Begin(size_t slot) {
    if ((slots_[slot].state.fetch_add(1) & kAside) != 0) AwaitAside(slot);
  }
  void End(size_t slot) { slots_[slot].state.fetch_sub(1); }

  // Calls `send`, which must be quick, while no reply of the slot is in progress or begins. False,
  // without having called it, if one is in progress; otherwise its result.
  bool Aside(size_t slot, const std::function<bool()>& send) {
    uint32_t none = 0;
    if (!slots_[slot].state.compare_exchange_strong(none, kAside)) return false;
    const bool sent = send();
    slots_[slot].state.fetch_sub(kAside);
    return sent;
  }

 private:
  static constexpr size_t kSlots = 128;
  static constexpr uint32_t kAside = uint32_t{1} << 31;  // beside the count of replies
  struct alignas(64) Slot {
    std::atomic<uint32_t> state{0};
  };

  void AwaitAside(size_t slot) const {
    while ((slots_[slot].state.load() & kAside) != 0) std::this_thread::yield();
  }

  std::array<Slot, kSlots> slots_;
};

// A reply that is counted. Threading: one thread at a time.
class CountedReply {
 public:
  CountedReply(ReplyCount* count, size_t slot) : count_(*count), slot_(slot) {}
  CountedReply(const CountedReply&) = delete;
  CountedReply& operator=(const CountedReply&) = delete;
  ~CountedReply() { End(); }
  void Begin() {
    if (!std::exchange(counted_, true)) count_.Begin(slot_);
  }
  void End() {
    if (std::exchange(counted_, false)) count_.End(slot_);
  }

 private:
  ReplyCount& count_;
  const size_t slot_;
  bool counted_ = false;
};

// How many unary calls are in progress, and whether new ones are accepted.
// Threading: any thread.
class CallGate {
 public:
  // The replies of all calls, streams included.
  ReplyCount* replies() { return &replies_; }
  // False once closed; otherwise Leave follows.
  bool Enter() {
    calls_.fetch_add(kOneEntered + 1);
    if (!closed_.load()) return true;
    Leave();
    return false;
  }
  void Leave() {
    if (Active(calls_.fetch_sub(1)) != 1 || !closed_.load()) return;
    MutexLock lock(mutex_);
    empty_.NotifyAll();
  }
  // How many have entered, or tried to; wraps around after 2^32.
  int64_t entered() const { return static_cast<int64_t>(calls_.load() / kOneEntered); }
  // Admits no more and waits for those inside, at most until `deadline`.
  void CloseAndWait(TimePoint deadline) {
    closed_.store(true);
    MutexLock lock(mutex_);
    while (Active(calls_.load()) != 0 && empty_.WaitUntil(mutex_, deadline)) {
    }
  }

 private:
  // Both counts in one word: those inside in its lower half.
  static constexpr uint64_t kOneEntered = uint64_t{1} << 32;
  static uint64_t Active(uint64_t calls) { return calls % kOneEntered; }

  ReplyCount replies_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> closed_{false};
  Mutex mutex_;  // of the condition alone
  CondVar empty_;
};

}  // namespace floe::server
