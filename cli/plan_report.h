// The steps of a plan as `inspect --plan` shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "runtime/plan.h"

namespace floe::cli {

// Where an output of a step lives.
struct PlannedValue {
  std::string type;   // "float32[rows,10]"; with rows given "float32[8,10]"; "?" before a request
  std::string place;  // "arena +4096", "over input 0", "dynamic", "caller"
  int64_t bytes = 0;  // at the rows asked about; 0 when only a request tells
};

struct PlannedStep {
  std::string name, op;
  std::string route;  // how it is computed; empty for plain kernels
  RouteChoice choice;
  int depth = 0;  // 1 and more: inside a subgraph, whose shapes the callers settle
  std::vector<PlannedValue> outputs;
  double flops = 0;   // estimates at the rows asked about
  int64_t bytes = 0;  // read and written
};

// A part of the plan that a device computes in one go.
struct PlannedIsland {
  std::string name;  // as of IslandInfo
  int nodes = 0;
  int64_t in_bytes = 0, out_bytes = 0;  // that cross, at the rows asked about; 0 when only a
                                        // request tells
};

// A node that the host computes beside islands.
struct HostNode {
  std::string name, op, why;
};

struct PlanReport {
  int64_t rows = 1;  // of all figures
  std::vector<PlannedStep> steps;
  int64_t arena_bytes = 0;
  int64_t live_bytes = 0;          // the most that values and scratch of any one step, and values
                                   // waiting for later ones, take together
  int64_t largest_step_bytes = 0;  // the most that inputs and outputs of one step take
  double flops = 0;
  int64_t packed_bytes = 0;  // weights packed by kernels
  // Of a plan for another device than the host; those in branches and loops included.
  std::optional<DeviceKind> device;
  std::vector<PlannedIsland> islands;
  std::vector<HostNode> on_host;
};

// `rows` < 1: shapes and offsets keep rows open, figures are for one row. `kernels`: those of
// islands, where the signature was compiled for a device; null: it was not.
PlanReport DescribePlan(const CompiledSignature& signature, const Plan& plan, int64_t rows,
                        const KernelOptions* kernels = nullptr);

void PrintPlan(const PlanReport& report, std::ostream& out);
nlohmann::ordered_json PlanJson(const PlanReport& report);

}  // namespace floe::cli
