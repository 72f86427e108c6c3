#include "runtime/island_runs.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace floe {
namespace {

constexpr size_t kMostUnprepared = 16;

}  // namespace

absl::Status IslandRuns::Prepare(const Plan* plan, absl::Span<const int64_t> rows) {
  sizes_.insert(rows.begin(), rows.end());
  std::vector<Island> islands;
  bool on_host = true;
  for (const int64_t count : rows)
    if (plan != nullptr) Collect(*plan, count, &islands, &on_host);
  if (const auto before = prepared_.find(plan); before != prepared_.end()) {
    Forget(before->second);
    prepared_.erase(before);
  }
  if (islands.empty()) return absl::OkStatus();
  for (const Island& island : islands) {
    PlanRuns& runs = RunsOf(island.nested.plan);
    runs.weights = island.weights;
    Entry& entry = runs.by_rows[island.nested.rows];
    entry.name = island.name;
    entry.prepared = true;
  }
  absl::Status made = Reserve(islands.front().weights->device(), nullptr, 0);
  if (made.ok()) made = MakePrepared();
  const bool known = made.ok() || (on_host && !absl::IsResourceExhausted(made));
  if (known) {
    prepared_[plan] = std::move(islands);
    return absl::OkStatus();
  }
  Forget(islands);
  return made;
}

// `on_host` is cleared by an island that the host may not compute.
void IslandRuns::Collect(const Plan& plan, int64_t rows, std::vector<Island>* islands,
                         bool* on_host) const {
  for (const Step& step : plan.steps()) {
    for (size_t i = 0; step.programs != nullptr && i < step.programs->size(); ++i) {
      const Node& node = plan.graph().node(step.node);
      const CompiledSignature& program = *(*step.programs)[i];
      const bool is_island = node.op->name == "OnDevice";
      if (is_island && program.on_device() == nullptr) continue;
      const auto nested = BindAhead(plan, step, i, rows);
      if (!nested.ok()) continue;  // what a run does with it is the run's
      if (!is_island) {
        Collect(*nested->plan, nested->rows, islands, on_host);
        continue;
      }
      if (!IslandRun::Covers(*nested->plan)) continue;
      *on_host &= program.on_host() != nullptr;
      islands->push_back({node.name, *nested, program.on_device()});
    }
  }
}

IslandRuns::PlanRuns& IslandRuns::RunsOf(const std::shared_ptr<const Plan>& plan) {
  PlanRuns& runs = plans_[plan.get()];
  if (runs.plan != nullptr) return runs;
  runs.plan = plan;
  runs.separate = IslandRun::RowsAreSeparate(*plan);
  return runs;
}

int64_t IslandRuns::RoundUp(const PlanRuns& runs, int64_t rows) const {
  if (!runs.separate || rows == 0) return rows;
  const auto size = sizes_.lower_bound(rows);
  return size == sizes_.end() ? rows : *size;
}

IslandRun* IslandRuns::FindMade(const NestedPlan& nested) {
  const auto runs = plans_.find(nested.plan.get());
  if (runs == plans_.end()) return nullptr;
  const auto entry = runs->second.by_rows.find(RoundUp(runs->second, nested.rows));
  return entry == runs->second.by_rows.end() ? nullptr : entry->second.run.get();
}

absl::StatusOr<IslandRun*> IslandRuns::Find(const Island& island) {
  PlanRuns& runs = RunsOf(island.nested.plan);
  runs.weights = island.weights;
  const int64_t rows = RoundUp(runs, island.nested.rows);
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
  size_t arena = 0, staging = 0;
  const auto need = [&](const Plan& plan, int64_t count) {
    arena = std::max(arena, IslandRun::ArenaBytes(plan, count));
    staging = std::max(staging, IslandRun::StagingBytes(plan, count));
  };
  if (runs != nullptr) need(*runs->plan, rows);
  for (const auto& [plan, other] : plans_) {
    for (const auto& [count, entry] : other.by_rows)
      if (entry.prepared) need(*other.plan, count);
  }
  if (place_.stream != nullptr && arena <= place_.arena->size() &&
      staging <= place_.staging->size())
    return absl::OkStatus();
  auto made = MakePlace(device, arena, staging);
  if (absl::IsResourceExhausted(made.status()) && place_.arena != nullptr) {
    DropRuns();
    place_ = {};
    made = MakePlace(device, arena, staging);
  }
  FLOE_RETURN_IF_ERROR(made.status());
  DropRuns();
  place_ = *std::move(made);
  return absl::OkStatus();
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
  FLOE_ASSIGN_OR_RETURN(
      entry.run,
      IslandRun::Make({entry.name, runs->plan, runs->weights, runs->constants, place_}, rows));
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
