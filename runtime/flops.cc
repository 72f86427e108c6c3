// Floating-point operations of nodes and plans, estimated.
#include <vector>

#include "runtime/analyze.h"
#include "runtime/plan.h"

namespace floe {
namespace {

double IslandFlops(const Node& island, const Types& in, int64_t rows) {
  const Graph& body = *island.subgraphs.front();
  std::vector<ValueInfo> inputs;
  for (const TensorType& type : in) inputs.push_back({type, {}, {}});
  const std::vector<RowMark> marks(in.size(), RowMark::kUnknown);
  const auto analysis = Analyze(body, inputs, marks, {});
  double flops = 0;
  for (int i = 0; i < body.size() && analysis.ok(); ++i) {
    const Node& node = body.node(i);
    if (node.op->alias || node.op->name == "Input" || node.op->name == "Const") continue;
    Types inside, out;
    for (const ValueRef& ref : node.inputs) inside.push_back(analysis->at(ref).type);
    for (const ValueInfo& value : analysis->values[i]) out.push_back(value.type);
    flops += EstimateFlops(node, inside, out, rows);
  }
  return flops;
}

}  // namespace

double EstimateFlops(const Node& node, const Types& in, const Types& out, int64_t rows) {
  if (node.op->name == "OnDevice") return IslandFlops(node, in, rows);
  if (node.op->flops != nullptr) return node.op->flops(node, in, out, rows);
  return static_cast<double>(out.empty() ? 0 : out[0].shape.elements().At(rows));
}

double Plan::StepFlops(const Step& step, int64_t rows) const {
  if (step.dynamic) return 0;
  Types in, out;
  for (int s : step.inputs) in.push_back(slots_[s].type);
  for (int s : step.outputs) out.push_back(slots_[s].type);
  return EstimateFlops(program_->graph.node(step.node), in, out, rows);
}

double Plan::Flops(int64_t rows) const {
  double total = 0;
  for (const Step& step : steps_) total += StepFlops(step, rows);
  return total;
}

}  // namespace floe
