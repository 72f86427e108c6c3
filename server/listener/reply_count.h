// ReplyCount: which connections have a reply under way, so that something can be sent on the
// others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

namespace floe::server {

// Connections are counted by their peers' ports, several together: gRPC does not tell them apart by
// more than the peer's address, and those of unix sockets have none, so that all of them are one.
// Threading: any thread.
class ReplyCount {
 public:
  // `peer` as gRPC says it: "ipv4:127.0.0.1:40213", "unix:".
  static size_t SlotOf(std::string_view peer);
  static size_t SlotOfPort(uint16_t port) { return port == 0 ? 0 : 1 + port % (kSlots - 1); }

  // Before gRPC gets the reply, and once it has written all of it or given it up.
  void Begin(size_t slot) {
    if ((slots_[slot].state.fetch_add(1) & kAside) != 0) AwaitAside(slot);
  }
  void End(size_t slot) { slots_[slot].state.fetch_sub(1); }

  // Calls `send`, which must be quick, while no reply of the slot is under way or begins. False,
  // without having called it, when one is under way; otherwise what it says.
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

}  // namespace floe::server
