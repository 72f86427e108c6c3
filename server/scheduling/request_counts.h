// RequestCounts: how the requests of a version ended, and how long they took, since the start.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/mutex.h"
#include "server/request/door.h"
#include "server/request/inference.h"
#include "server/scheduling/time_bounds.h"

namespace floe::server {

inline constexpr size_t kStatusCodes = 17;

// Of the requests for one signature by one door.
struct RequestCount {
  std::string signature;  // "": they were refused before it was known
  Door door = Door::kPredict;
  std::array<uint64_t, kStatusCodes> by_code{};  // by absl::StatusCode
  // In seconds, of those that were answered with OK: from their arrival to the answer, and their
  // runs, each as long as the whole run that they shared.
  Histogram seconds{kTimeBounds}, run_seconds{kTimeBounds};
};

// Threads count in different places, which are summed when they are read. So a request pays some
// nanoseconds, however many threads count.
// Threading: any thread.
class RequestCounts {
 public:
  // One signature and door.
  class Cell {
   public:
    // A request that ended with the code, or, with -1, did not after all.
    void Count(absl::StatusCode code, int more = 1);
    // One that ended with OK.
    void AddTimes(Duration whole, Duration run);

   private:
    friend class RequestCounts;
    struct Times {
      std::array<std::atomic<uint64_t>, kTimeBounds.size() + 1> buckets{};
      std::atomic<int64_t> ticks{0};  // of Duration

      void Add(Duration took);
      void CopyTo(Histogram* histogram) const;
    };
    struct alignas(64) Part {
      std::array<std::atomic<uint64_t>, kStatusCodes> by_code{};
      Times whole, run;
    };
    static constexpr size_t kParts = 8;
    static Part& Mine(std::array<Part, kParts>* parts);

    const Signature* signature_ = nullptr;
    Door door_ = Door::kPredict;
    std::string name_;
    std::unique_ptr<Cell> next_;
    std::array<Part, kParts> parts_;
  };

  RequestCounts() = default;
  ~RequestCounts() { delete newest_.load(); }
  RequestCounts(const RequestCounts&) = delete;
  RequestCounts& operator=(const RequestCounts&) = delete;

  // Those of the signature and the door that are asked for; where there is no memory for one that
  // is new, those of Predict without a signature. Stays.
  Cell& Of(const Inference& asked) {
    Cell* const found = Find(newest_.load(std::memory_order_acquire), asked);
    return found != nullptr ? *found : Make(asked);
  }
  // Of those that have requests, in the order of signature and door.
  std::vector<RequestCount> Read() const;

 private:
  static Cell* Find(Cell* from, const Inference& asked) {
    while (from != nullptr && (from->signature_ != asked.signature || from->door_ != asked.door))
      from = from->next_.get();
    return from;
  }
  Cell& Make(const Inference& asked);

  Cell unknown_;                        // Predict, without a signature
  std::atomic<Cell*> newest_{nullptr};  // of the others; owned, as each owns its next
  Mutex mutex_;                         // one cell is made at a time
};

}  // namespace floe::server
