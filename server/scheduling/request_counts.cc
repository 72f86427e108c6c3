// Cells are in a list that only grows: there are as few as a model has signatures.
#include "server/scheduling/request_counts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/budget.h"

namespace floe::server {

void RequestCounts::Cell::Times::Add(Duration took) {
  buckets[BucketOf(kTimeBounds, Seconds(took))].fetch_add(1, std::memory_order_relaxed);
  ticks.fetch_add(took.count(), std::memory_order_relaxed);
}

void RequestCounts::Cell::Times::CopyTo(Histogram* histogram) const {
  for (size_t i = 0; i < buckets.size(); ++i)
    histogram->AddBucket(i, buckets[i].load(std::memory_order_relaxed));
  histogram->AddSum(Seconds(Duration(ticks.load(std::memory_order_relaxed))));
}

// Few threads share one.
RequestCounts::Cell::Part& RequestCounts::Cell::Mine(std::array<Part, kParts>* parts) {
  static std::atomic<size_t> threads{0};
  thread_local const size_t mine = threads.fetch_add(1) % kParts;
  return (*parts)[mine];
}

void RequestCounts::Cell::Count(absl::StatusCode code, int more) {
  const size_t index = static_cast<size_t>(code) % kStatusCodes;
  Mine(&parts_).by_code[index].fetch_add(static_cast<uint64_t>(more), std::memory_order_relaxed);
}

void RequestCounts::Cell::AddTimes(Duration whole, Duration run) {
  Part& part = Mine(&parts_);
  part.whole.Add(whole);
  part.run.Add(run);
}

RequestCounts::Cell& RequestCounts::Make(const Inference& asked) {
  if (Find(&unknown_, asked) == &unknown_) return unknown_;
  MutexLock lock(mutex_);
  Cell* const first = newest_.load();
  if (Cell* const found = Find(first, asked); found != nullptr) return *found;
  std::unique_ptr<Cell> made;
  const absl::Status status = CatchOutOfMemory([&] {
    auto cell = std::make_unique<Cell>();
    if (asked.signature != nullptr) cell->name_ = asked.signature->def().name;
    made = std::move(cell);
    return absl::OkStatus();
  });
  if (!status.ok()) return unknown_;
  made->signature_ = asked.signature;
  made->door_ = asked.door;
  made->next_.reset(first);
  newest_.store(made.get(), std::memory_order_release);
  return *made.release();
}

std::vector<RequestCount> RequestCounts::Read() const {
  std::vector<RequestCount> counts;
  const auto read = [&counts](const Cell& cell) {
    RequestCount count;
    count.signature = cell.name_;
    count.door = cell.door_;
    for (const Cell::Part& part : cell.parts_) {
      for (size_t i = 0; i < kStatusCodes; ++i)
        count.by_code[i] += part.by_code[i].load(std::memory_order_relaxed);
      part.whole.CopyTo(&count.seconds);
      part.run.CopyTo(&count.run_seconds);
    }
    if (absl::c_any_of(count.by_code, [](uint64_t one) { return one > 0; }))
      counts.push_back(std::move(count));
  };
  read(unknown_);
  for (const Cell* cell = newest_.load(std::memory_order_acquire); cell != nullptr;
       cell = cell->next_.get())
    read(*cell);
  std::sort(counts.begin(), counts.end(), [](const RequestCount& a, const RequestCount& b) {
    return std::tie(a.signature, a.door) < std::tie(b.signature, b.door);
  });
  return counts;
}

}  // namespace floe::server
