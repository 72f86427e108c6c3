// IslandRuns: what one worker needs on a device for the islands of its plans.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/island_run.h"
#include "runtime/nested_plan.h"

namespace floe {

// Has one stream, arena and staging for all islands, and for each a CUDA graph by rows. What was
// prepared stays until the end; of other graphs the most recent ones. When something needs more
// memory than there is, all graphs are made again, each when it is next needed. Islands that are
// prepared have parts of the staging of their own; others begin at its start.
// Threading: one thread.
class IslandRuns {
 public:
  // Makes graphs for runs of the plan with so many rows, in place of what was prepared for it
  // before, if that was for other numbers. Where rows are not separate, it makes those for all
  // small numbers too (kMostSmall). Its islands in branches and loops are included, where types
  // tell their shapes. Memory is reserved for the largest. These numbers are also those to which
  // the rows of other runs are rounded up, where rows are separate. RESOURCE_EXHAUSTED: memory is
  // short, and nothing of the plan is kept. Other errors of the device are none for islands that
  // the host may compute (CompiledSignature::on_host). Null: of plans that will come, only the
  // numbers of rows are known. Beyond kMostPlans plans nothing is made.
  absl::Status Prepare(std::shared_ptr<const Plan> plan, absl::Span<const int64_t> rows);
  static constexpr int64_t kMostSmall = 16;
  static constexpr size_t kMostPlans = 64;

  struct Island {
    std::string name;  // for errors
    NestedPlan nested;
    std::shared_ptr<const DeviceWeights> weights;
  };
  // The run for an island whose plan IslandRun covers: of its rows or of more. Until the next call.
  // Errors are those of the device.
  absl::StatusOr<IslandRun*> Find(const Island& island);
  // The same; null: it would have to be made.
  IslandRun* FindMade(const NestedPlan& nested);
  // Whether no island of such a run of the plan, at whatever depth, stages anything where another
  // does: what is staged for one before the run is there when that begins.
  bool StagesApart(const Plan& plan, int64_t rows) const;

  bool empty() const { return plans_.empty(); }
  size_t staging_bytes() const { return place_.staging == nullptr ? 0 : place_.staging->size(); }

 private:
  struct Entry {
    std::string name;
    bool prepared = false;
    uint64_t used = 0;  // a count of calls
    std::unique_ptr<IslandRun> run;
  };
  struct Needs {
    size_t arena = 0, staging = 0;
  };
  struct PlanRuns {
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const DeviceWeights> weights;  // null: nothing was run yet
    std::shared_ptr<const IslandConstants> constants;
    bool separate = false;  // IslandRun::RowsAreSeparate
    size_t staging_at = 0, staging_bytes = 0;
    std::map<int64_t, Entry> by_rows;

    // The rows of the graph that a run of so many may be; `sizes` where none is prepared.
    int64_t RoundUp(int64_t rows, const std::set<int64_t>& sizes) const;
    Needs Prepared() const;
  };
  // Of a plan that has islands.
  struct PreparedPlan {
    std::shared_ptr<const Plan> plan;
    std::set<int64_t> asked;  // numbers of rows
    std::set<int64_t> rows;   // those that are prepared
    std::vector<Island> islands;
    bool complete = false;  // types tell the shapes of all islands, which the device covers
    bool separate = false;  // rows of all islands
  };

  PlanRuns& RunsOf(const std::shared_ptr<const Plan>& plan);
  size_t PlaceStaging(size_t end, bool anew);
  // Of what is prepared, and of `runs` at `rows` where that is not null.
  absl::Status Reserve(const std::shared_ptr<cuda::Device>& device, const PlanRuns* runs,
                       int64_t rows);
  absl::StatusOr<IslandPlace> MakePlace(const std::shared_ptr<cuda::Device>& device, size_t arena,
                                        size_t staging) const;
  absl::Status Make(PlanRuns* runs, int64_t rows);
  absl::Status MakePrepared();
  void DropRuns();
  void DropOldest();
  void Forget(absl::Span<const Island> islands);

  IslandPlace place_;
  std::map<const Plan*, PlanRuns> plans_;
  std::map<const Plan*, PreparedPlan> prepared_;  // by the plan that has them
  std::set<int64_t> sizes_;
  uint64_t calls_ = 0;
};

}  // namespace floe
