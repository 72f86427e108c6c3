#include "runtime/island_runs.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace floe {
namespace {

constexpr size_t kMostUnprepared = 16, kManyPlans = 4;

// The islands of a run.
struct Collected {
  std::vector<IslandRuns::Island> islands;
  bool on_host = true;   // none is one that the host may not compute
  bool complete = true;  // none is left out
};

void Collect(const Plan& plan, int64_t rows, Collected* collected) {
  for (const Step& step : plan.steps()) {
    for (size_t i = 0; step.programs != nullptr && i < step.programs->size(); ++i) {
      const Node& node = plan.graph().node(step.node);
      const CompiledSignature& program = *(*step.programs)[i];
      const bool is_island = node.op->name == "OnDevice";
      if (is_island && program.on_device() == nullptr) continue;
      const auto nested = BindAhead(plan, step, i, rows);
      if (!nested.ok()) {  // what a run does with it is the run's
        collected->complete = false;
        continue;
      }
      if (!is_island) {
        Collect(*nested->plan, nested->rows, collected);
        continue;
      }
      if (!IslandRun::Covers(*nested->plan)) continue;
      collected->on_host &= program.on_host() != nullptr;
      collected->islands.push_back({node.name, *nested, program.on_device()});
    }
  }
}

// Where an island's rows are not separate, no graph is one for fewer rows. Returns whether all are.
bool CollectSmall(const Plan& plan, std::set<int64_t>* rows, Collected* collected) {
  const bool separate = std::all_of(collected->islands.begin(), collected->islands.end(),
                                    [](const IslandRuns::Island& island) {
                                      return IslandRun::RowsAreSeparate(*island.nested.plan);
                                    });
  if (separate || !plan.has_rows()) return separate;
  const int64_t most = std::min(IslandRuns::kMostSmall, *rows->rbegin());
  for (int64_t count = 1; count <= most; ++count)
    if (rows->insert(count).second) Collect(plan, count, collected);
  return false;
}

}  // namespace

absl::Status IslandRuns::Prepare(std::shared_ptr<const Plan> plan, absl::Span<const int64_t> rows) {
  sizes_.insert(rows.begin(), rows.end());
  if (plan == nullptr) return absl::OkStatus();
  PreparedPlan prepared;
  prepared.asked.insert(rows.begin(), rows.end());
  if (const auto before = prepared_.find(plan.get()); before != prepared_.end()) {
    if (before->second.asked == prepared.asked) return absl::OkStatus();
    Forget(before->second.islands);
    prepared_.erase(before);
  }
  if (prepared_.size() >= kMostPlans) return absl::OkStatus();
  Collected collected;
  for (const int64_t count : rows) Collect(*plan, count, &collected);
  if (collected.islands.empty()) return absl::OkStatus();
  prepared.rows = prepared.asked;
  prepared.separate = CollectSmall(*plan, &prepared.rows, &collected);
  for (const Island& island : collected.islands) {
    PlanRuns& runs = RunsOf(island.nested.plan);
    runs.weights = island.weights;
    Entry& entry = runs.by_rows[island.nested.rows];
    entry.name = island.name;
    entry.prepared = true;
  }
  const std::shared_ptr<cuda::Device> device = collected.islands.front().weights->device();
  absl::Status made = Reserve(device, nullptr, 0);
  if (made.ok()) made = MakePrepared();
  if (made.ok() || (collected.on_host && !absl::IsResourceExhausted(made))) {
    prepared.islands = std::move(collected.islands);
    prepared.complete = collected.complete;
    const Plan* const key = plan.get();
    prepared.plan = std::move(plan);
    prepared_[key] = std::move(prepared);
    return absl::OkStatus();
  }
  Forget(collected.islands);
  // What other plans have is made again, as far as that succeeds.
  if (!prepared_.empty() && Reserve(device, nullptr, 0).ok()) (void)MakePrepared();
  return made;
}

IslandRuns::PlanRuns& IslandRuns::RunsOf(const std::shared_ptr<const Plan>& plan) {
  PlanRuns& runs = plans_[plan.get()];
  if (runs.plan != nullptr) return runs;
  runs.plan = plan;
  runs.separate = IslandRun::RowsAreSeparate(*plan);
  return runs;
}

int64_t IslandRuns::PlanRuns::RoundUp(int64_t rows, const std::set<int64_t>& sizes) const {
  if (!separate || rows == 0) return rows;
  for (auto entry = by_rows.lower_bound(rows); entry != by_rows.end(); ++entry)
    if (entry->second.prepared) return entry->first;
  const auto size = sizes.lower_bound(rows);
  return size == sizes.end() ? rows : *size;
}

IslandRun* IslandRuns::FindMade(const NestedPlan& nested) {
  const auto runs = plans_.find(nested.plan.get());
  if (runs == plans_.end()) return nullptr;
  const auto entry = runs->second.by_rows.find(runs->second.RoundUp(nested.rows, sizes_));
  return entry == runs->second.by_rows.end() ? nullptr : entry->second.run.get();
}

bool IslandRuns::StagesApart(const Plan& plan, int64_t rows) const {
  const auto found = prepared_.find(&plan);
  if (found == prepared_.end() || !found->second.complete) return false;
  const PreparedPlan& prepared = found->second;
  return prepared.rows.contains(rows) || (prepared.separate && rows <= *prepared.rows.rbegin());
}

absl::StatusOr<IslandRun*> IslandRuns::Find(const Island& island) {
  PlanRuns& runs = RunsOf(island.nested.plan);
  runs.weights = island.weights;
  const int64_t rows = runs.RoundUp(island.nested.rows, sizes_);
  Entry& entry = runs.by_rows[rows];
  entry.used = ++calls_;
  if (entry.run == nullptr) {
    entry.name = island.name;
    DropOldest();
    FLOE_RETURN_IF_ERROR(Reserve(island.weights->device(), &runs, rows));
    FLOE_RETURN_IF_ERROR(Make(&runs, rows));
  }
  return entry.run.get();
}

absl::Status IslandRuns::Reserve(const std::shared_ptr<cuda::Device>& device, const PlanRuns* runs,
                                 int64_t rows) {
  if (place_.stream != nullptr && place_.stream->device() != device) {
    DropRuns();
    place_ = {};
  }
  size_t arena = 0, staging = 0, end = 0, missing = 0;
  if (runs != nullptr) {
    arena = IslandRun::ArenaBytes(*runs->plan, rows);
    staging = IslandRun::StagingBytes(*runs->plan, rows);
  }
  for (const auto& [plan, other] : plans_) {
    const Needs needs = other.Prepared();
    arena = std::max(arena, needs.arena);
    end = std::max(end, other.staging_at + other.staging_bytes);
    if (needs.staging > other.staging_bytes) missing += needs.staging;
  }
  const bool fits = place_.stream != nullptr && arena <= place_.arena->size() &&
                    std::max(staging, end + missing) <= place_.staging->size();
  if (fits) {
    (void)PlaceStaging(end, /*anew=*/false);
    return absl::OkStatus();
  }
  staging = std::max(staging, PlaceStaging(0, /*anew=*/true));
  // Many plans come one by one, and each time all graphs are made again.
  const bool many = place_.staging != nullptr && prepared_.size() >= kManyPlans;
  auto made = MakePlace(device, arena, many ? 2 * staging : staging);
  if (absl::IsResourceExhausted(made.status())) {
    DropRuns();
    place_ = {};
    made = MakePlace(device, arena, staging);
  }
  DropRuns();
  FLOE_RETURN_IF_ERROR(made.status());
  place_ = *std::move(made);
  return absl::OkStatus();
}

IslandRuns::Needs IslandRuns::PlanRuns::Prepared() const {
  Needs needs;
  for (const auto& [count, entry] : by_rows) {
    if (!entry.prepared) continue;
    needs.arena = std::max(needs.arena, IslandRun::ArenaBytes(*plan, count));
    needs.staging = std::max(needs.staging, IslandRun::StagingBytes(*plan, count));
  }
  return needs;
}

// Gives all that is prepared a part of the staging from `end` on, or what has too little. Returns
// where the last ends.
size_t IslandRuns::PlaceStaging(size_t end, bool anew) {
  for (auto& [plan, runs] : plans_) {
    const size_t need = runs.Prepared().staging;
    if (!anew && need <= runs.staging_bytes) continue;
    for (auto& [rows, entry] : runs.by_rows) entry.run.reset();
    runs.staging_at = end;
    runs.staging_bytes = need;
    end += need;
  }
  return end;
}

// Keeps of the present one what is large enough.
absl::StatusOr<IslandPlace> IslandRuns::MakePlace(const std::shared_ptr<cuda::Device>& device,
                                                  size_t arena, size_t staging) const {
  IslandPlace place = place_;
  if (place.stream == nullptr) {
    FLOE_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::Stream::Make(device));
    place.stream = std::make_shared<const cuda::Stream>(std::move(stream));
  }
  if (place.arena == nullptr || place.arena->size() < arena) {
    FLOE_ASSIGN_OR_RETURN(cuda::DeviceBuffer buffer, cuda::DeviceBuffer::Make(device, arena));
    place.arena = std::make_shared<const cuda::DeviceBuffer>(std::move(buffer));
  }
  if (place.staging == nullptr || place.staging->size() < staging) {
    FLOE_ASSIGN_OR_RETURN(cuda::PinnedBuffer buffer, cuda::PinnedBuffer::Make(device, staging));
    place.staging = std::make_shared<const cuda::PinnedBuffer>(std::move(buffer));
  }
  return place;
}

absl::Status IslandRuns::Make(PlanRuns* runs, int64_t rows) {
  if (runs->constants == nullptr) {
    FLOE_ASSIGN_OR_RETURN(runs->constants, IslandRun::MakeConstants(*runs->plan, *runs->weights));
  }
  Entry& entry = runs->by_rows[rows];
  IslandPlace place = place_;
  place.staging_at = entry.prepared ? runs->staging_at : 0;
  FLOE_ASSIGN_OR_RETURN(entry.run, IslandRun::Make({entry.name, runs->plan, runs->weights,
                                                    runs->constants, std::move(place)},
                                                   rows));
  return absl::OkStatus();
}

absl::Status IslandRuns::MakePrepared() {
  for (auto& [plan, runs] : plans_) {
    for (auto& [rows, entry] : runs.by_rows) {
      if (entry.prepared && entry.run == nullptr) FLOE_RETURN_IF_ERROR(Make(&runs, rows));
    }
  }
  return absl::OkStatus();
}

void IslandRuns::DropRuns() {
  for (auto& [plan, runs] : plans_) {
    for (auto& [rows, entry] : runs.by_rows) entry.run.reset();
  }
}

// Leaves the most recent of those that were not prepared, and no plan without any.
void IslandRuns::DropOldest() {
  std::vector<uint64_t> used;
  for (const auto& [plan, runs] : plans_) {
    for (const auto& [rows, entry] : runs.by_rows)
      if (!entry.prepared) used.push_back(entry.used);
  }
  if (used.size() <= kMostUnprepared) return;
  std::sort(used.begin(), used.end(), std::greater<>());
  const uint64_t oldest = used[kMostUnprepared - 1];
  for (auto& [plan, runs] : plans_) {
    std::erase_if(runs.by_rows, [oldest](const auto& entry) {
      return !entry.second.prepared && entry.second.used < oldest;
    });
  }
  std::erase_if(plans_, [](const auto& entry) { return entry.second.by_rows.empty(); });
}

// Whatever of them was made: the memory is for what is tried next.
void IslandRuns::Forget(absl::Span<const Island> islands) {
  for (const Island& island : islands) {
    const auto runs = plans_.find(island.nested.plan.get());
    if (runs == plans_.end()) continue;
    runs->second.by_rows.erase(island.nested.rows);
    if (runs->second.by_rows.empty()) plans_.erase(runs);
  }
  DropRuns();
  place_ = {};
}

}  // namespace floe
