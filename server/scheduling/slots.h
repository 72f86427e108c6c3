// SlotTable: what each slot of an executor runs, and how long runs took of late.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "server/request/request.h"

namespace floe::server {

// A run, from the time its slot is taken.
struct SlotUse {
  TimePoint started = TimePoint::max();  // max(): the slot is idle
  double batches = 1;                    // rows / max_rows, at least 1
  int64_t rows = 0;
  const void* key = nullptr;             // Binding::key
  Duration measured = Duration::zero();  // Executor::Expect
  Duration expected = Duration::zero();
  int worker = -1;  // whose thread it is on; -1: a caller's
  bool failed = false;
  bool reported = false;                 // that it is stuck
  absl::Span<Request* const> batch;      // empty once the run is over
  std::optional<CancelToken> abandoned;  // of a run of several requests: all have left

  bool busy() const { return started != TimePoint::max(); }
};

// Threading: the caller locks.
class SlotTable {
 public:
  explicit SlotTable(int slots);

  bool any_idle() const { return !idle_.empty(); }
  bool any_busy() const { return idle_.size() < slots_.size(); }
  // The slot last used, because its memory is warm; there is an idle one.
  int Take(const SlotUse& use);
  void Release(int slot, TimePoint now);
  SlotUse& operator[](int slot) { return slots_[slot].use; }
  const SlotUse& operator[](int slot) const { return slots_[slot].use; }
  int size() const { return static_cast<int>(slots_.size()); }
  // Of all runs under way, until they end.
  Duration Remaining(TimePoint now) const;

  // Takes an idle slot used before that time and not trimmed since; -1: there is none.
  int TakeUnused(TimePoint used_before);
  void ReturnTrimmed(int slot) { idle_.insert(idle_.begin(), slot); }

 private:
  struct Slot {
    SlotUse use;
    TimePoint idle_since = TimePoint::max();  // max(): never used, or trimmed since
  };
  std::vector<Slot> slots_;
  std::vector<int> idle_;  // last used at the end
};

// The slowest of the good runs, per as many rows as a batch may have. It fades: one slow run does
// not hide stuck ones for ever. Threading: the caller locks.
class SlowestRun {
 public:
  SlowestRun(Duration least, TimePoint now) : least_(least), slowest_(least), since_(now) {}
  void Note(Duration took, TimePoint now);
  Duration At(TimePoint now) const;

 private:
  const Duration least_;
  Duration slowest_;
  TimePoint since_;
};

}  // namespace floe::server
