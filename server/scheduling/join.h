// Join: a request of more rows than a run may have, computed as ordinary requests for parts of it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/memory_budget.h"
#include "base/mutex.h"
#include "server/scheduling/queued.h"

namespace floe::server {

// A few parts are under way at a time, in order, so that other requests have their turns between
// them. The first failure ends the whole. It lives as long as a part of it does.
// Threading: parts may end on any thread.
class Join : public std::enable_shared_from_this<Join> {
 public:
  using Submit = std::function<void(std::unique_ptr<Queued> part)>;
  // What became of the whole; the outputs are valid during the call.
  using Finish = std::function<void(std::unique_ptr<Queued> whole, const absl::Status& status,
                                    Outputs outputs)>;

  // So many parts are under way at a time. `memory` pays for the outputs.
  Join(int64_t part_rows, int parts, const MemoryBudget& memory, Submit submit, Finish finish);

  // Once. `whole` is bound and splittable. Calls `finish` exactly once, now or later.
  void Start(std::unique_ptr<Queued> whole);

 private:
  // Where one part after the other is under way.
  struct Lane {
    std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
    int64_t first = 0, rows = 0;  // no rows: no part
    absl::Status status;          // of the part that has just ended
    Timings timings;
  };
  bool TakeNext(Lane* lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Queued> MakePart(Lane* lane);
  void SubmitPart(Lane* lane);
  absl::Status Gather(const Lane& lane, Outputs outputs);
  void PartEnded(Lane* lane);
  void Cancel();
  void End();

  std::unique_ptr<Queued> whole_;
  const int64_t part_rows_;
  const MemoryBudget memory_;
  const Submit submit_;
  const Finish finish_;
  std::vector<Lane> lanes_;  // each is used by one thread at a time
  Mutex mutex_;
  int64_t next_row_ ABSL_GUARDED_BY(mutex_) = 0;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> outputs_ ABSL_GUARDED_BY(mutex_);  // rows are written outside of it
};

// Of the whole request's outputs, before anything is computed: OUT_OF_RANGE for more than a reply
// can hold.
absl::Status CheckOutputBytes(const Queued& whole);

}  // namespace floe::server
