#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "runtime/analyze.h"
#include "runtime/evaluate.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"
#include "runtime/predicate.h"

namespace floe {
namespace {

// All results together may take this beside so many times what the file's constants do: weights are
// widened, then moved about a few times.
constexpr int64_t kFoldedBytes = int64_t{64} << 20;
constexpr int64_t kFoldedTimes = 8;

int64_t MostFolded(const Graph& graph) {
  int64_t constants = 0;
  for (const Node& node : graph.nodes()) {
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (node.op->name == "Const" && value != nullptr) constants += HeldMemory(value->view());
  }
  return kFoldedBytes + kFoldedTimes * constants;
}

class ConstantFolder {
 public:
  ConstantFolder(const Graph& graph, const KernelOptions& options)
      : graph_(graph),
        options_(options),
        rebuild_(graph),
        values_(graph.size()),
        dead_(graph.size()),
        branches_(std::any_of(graph.nodes().begin(), graph.nodes().end(),
                              [](const Node& node) { return IsSwitch(node); })) {}

  absl::StatusOr<Graph> Run(absl::Span<const TensorType> inputs) {
    for (size_t k = 0; k < graph_.inputs.size(); ++k)
      values_[graph_.inputs[k]] = {ValueInfo{inputs[k], {}, {}}};
    for (int i = 0; i < graph_.size(); ++i) {
      NoteNode("folding", graph_.node(i));
      FLOE_RETURN_IF_ERROR(AtNode(graph_.node(i), Visit(i)));
    }
    for (const ValueRef& out : graph_.outputs) {
      if (!rebuild_.Mapped(out)) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", Quoted(TensorNameOf(graph_.node(out.node).name, out.output)),
                         " is dead: it lies in a branch that a constant predicate never takes"));
      }
    }
    return rebuild_.Finish();
  }

 private:
  static bool IsSwitch(const Node& node) {
    return node.op->name == "Switch" || node.op->name == "SwitchN";
  }
  bool IsDead(ValueRef ref) const {
    return ref.output < static_cast<int>(dead_[ref.node].size()) && dead_[ref.node][ref.output];
  }

  void MarkDead(int i) { dead_[i].assign(std::max(1, graph_.node(i).num_outputs), true); }

  absl::Status Visit(int i) {
    const Node& node = graph_.node(i);
    if (!values_[i].empty()) {  // an input
      rebuild_.Keep(i);
      return absl::OkStatus();
    }
    if (node.op->name == "Merge") return VisitMerge(i);
    const bool dead =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](const ValueRef& in) { return IsDead(in); }) ||
        std::any_of(node.control_inputs.begin(), node.control_inputs.end(), [&](int c) {
          return IsDead({c, 0});
        });
    if (dead) {
      MarkDead(i);
      return absl::OkStatus();
    }
    std::vector<ValueInfo> inputs;
    for (const ValueRef& in : node.inputs) inputs.push_back(values_[in.node][in.output]);
    if (IsSwitch(node) && inputs[1].has_constant()) return VisitSwitch(i, inputs);
    return Fold(i, inputs);
  }

  absl::Status VisitSwitch(int i, const std::vector<ValueInfo>& inputs) {
    const Node& node = graph_.node(i);
    if (node.num_outputs < 1) return absl::InvalidArgumentError("it has no outputs");
    const TensorView predicate = inputs[1].constant.view();
    int alive = node.num_outputs - 1;  // of a SwitchN, where the index names no output
    if (node.op->name == "Switch") {
      FLOE_ASSIGN_OR_RETURN(const bool taken, Truth(predicate, /*scalar_bool=*/true));
      alive = taken ? 1 : 0;
    } else if (predicate.dtype != DType::kInt32 || predicate.shape.rank() != 0) {
      return absl::InvalidArgumentError("its index is not an int32 scalar");
    } else if (const int32_t index = *predicate.as<int32_t>(); index >= 0 && index < alive) {
      alive = index;
    }
    rebuild_.Replace(i, alive, rebuild_.Map(node.inputs[0]));
    dead_[i].assign(node.num_outputs, true);
    dead_[i][alive] = false;
    values_[i].assign(node.num_outputs, inputs[0]);
    return absl::OkStatus();
  }

  absl::Status VisitMerge(int i) {
    const Node& node = graph_.node(i);
    std::vector<int> alive;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!IsDead(node.inputs[k])) alive.push_back(static_cast<int>(k));
    }
    if (alive.empty()) {
      MarkDead(i);
      return absl::OkStatus();
    }
    if (alive.size() > 1 || alive.size() == node.inputs.size()) {
      std::vector<ValueInfo> inputs;
      Node kept = node;
      kept.inputs.clear();
      for (int k : alive) {
        inputs.push_back(values_[node.inputs[k].node][node.inputs[k].output]);
        kept.inputs.push_back(rebuild_.Map(node.inputs[k]));
      }
      if (AnyUntyped(inputs)) {
        values_[i].assign(node.num_outputs, ValueInfo{});
      } else {
        FLOE_ASSIGN_OR_RETURN(values_[i], InferNode(node, inputs, options_));
      }
      rebuild_.Emit(i, std::move(kept));
      return absl::OkStatus();
    }
    const ValueRef in = node.inputs[alive[0]];
    const Tensor index = Tensor::Scalar<int32_t>(DType::kInt32, alive[0]);
    values_[i] = {values_[in.node][in.output],
                  ValueInfo{TensorType{DType::kInt32, SymShape()}, index, {}}};
    rebuild_.Replace(i, 0, rebuild_.Map(in));
    rebuild_.Replace(i, 1, {rebuild_.Append(ConstNode(node.name + "/value_index", index)), 0});
    return absl::OkStatus();
  }

  absl::Status Fold(int i, const std::vector<ValueInfo>& inputs) {
    const Node& node = graph_.node(i);
    // Unsupported nodes are listed all together once it is known which are needed.
    if (node.op->name == "Unsupported" || AnyUntyped(inputs)) {
      values_[i].assign(std::max(1, node.num_outputs), ValueInfo{});
      rebuild_.Keep(i);
      return absl::OkStatus();
    }
    if (node.op->name == "Assert" && inputs[0].has_constant() &&
        inputs[0].constant.dtype() == DType::kBool && inputs[0].constant.elements() == 1 &&
        *inputs[0].constant.as<bool>()) {
      return absl::OkStatus();  // can never fail
    }
    absl::StatusOr<std::vector<ValueInfo>> inferred = InferNode(node, inputs, options_);
    if (!inferred.ok() && branches_ && IsErrorOfRun(inferred.status())) {
      // It may lie in a branch that is not taken. Where it does not, the analysis tells.
      values_[i].assign(std::max(1, node.num_outputs), ValueInfo{});
      rebuild_.Keep(i);
      return absl::OkStatus();
    }
    FLOE_ASSIGN_OR_RETURN(values_[i], std::move(inferred));
    FoldDims(node, inputs, &values_[i]);
    if (static_cast<int>(values_[i].size()) < node.num_outputs) {
      return absl::InternalError(
          absl::StrCat("inference gave ", values_[i].size(), " of ", node.num_outputs, " outputs"));
    }
    const bool constant = !node.inputs.empty() && !values_[i].empty() &&
                          std::all_of(values_[i].begin(), values_[i].end(),
                                      [](const ValueInfo& v) { return v.has_constant(); });
    if (!constant) {
      rebuild_.Keep(i);
      return absl::OkStatus();
    }
    const std::vector<int> controls = branches_ ? BranchesOf(i) : std::vector<int>();
    for (int k = 0; k < node.num_outputs; ++k) {
      Node value = ConstNode(TensorNameOf(node.name, k), values_[i][k].constant);
      rebuild_.Replace(i, k, {rebuild_.Append(std::move(value), controls), 0});
    }
    return absl::OkStatus();
  }

  // A slice of a shape may have known dims alone, although the shape has others. For the slice
  // these count as affine: it moves elements, so none of them reaches a result that is constant.
  void FoldDims(const Node& node, std::vector<ValueInfo> inputs, std::vector<ValueInfo>* values) {
    if (node.op->name != "StridedSlice" || inputs[0].constant.valid()) return;
    const Node& from = graph_.node(node.inputs[0].node);
    if (from.op->name != "Shape") return;
    const ValueRef shaped = from.inputs[0];
    const SymShape& shape = values_[shaped.node][shaped.output].type.shape;
    if (!shape.rank_known() || inputs[0].type.dtype != DType::kInt32) return;
    std::vector<int32_t> dims, open;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Dim dim = shape.dim(axis);
      if (dim.concrete() && dim.size() > INT32_MAX) return;
      dims.push_back(dim.concrete() ? static_cast<int32_t>(dim.size()) : 0);
      open.push_back(dim.concrete() ? 0 : 1);
    }
    inputs[0].constant = Tensor::Vector(DType::kInt32, dims);
    inputs[0].per_row = Tensor::Vector(DType::kInt32, open);
    const absl::StatusOr<std::vector<ValueInfo>> known = InferNode(node, inputs, options_);
    if (known.ok() && known->size() == 1 && (*known)[0].has_constant()) *values = *known;
  }

  // Control edges that keep a folded value in the branch of a conditional where the node was: a
  // value may be known although the branch is not taken.
  std::vector<int> BranchesOf(int i) {
    std::set<int> controls;
    for (int control : graph_.node(i).control_inputs) {
      if (const ValueRef to = rebuild_.Map({control, 0}); to.node >= 0) controls.insert(to.node);
    }
    for (const ValueRef& in : graph_.node(i).inputs) {
      const ValueRef from = rebuild_.Map(in);
      const Node& source = rebuild_.out().node(from.node);
      if (source.op->name == "Const") {
        controls.insert(source.control_inputs.begin(), source.control_inputs.end());
      } else if (IsSwitch(source)) {
        controls.insert(PivotOf(from));  // control edges name no output
      } else {
        controls.insert(from.node);
      }
    }
    return {controls.begin(), controls.end()};
  }

  int PivotOf(ValueRef exchange) {
    const auto [found, fresh] = pivots_.emplace(exchange, -1);
    if (fresh) {
      Node pivot;
      pivot.name =
          TensorNameOf(rebuild_.out().node(exchange.node).name, exchange.output) + "/pivot";
      pivot.op = FindOp("Identity");
      pivot.inputs = {exchange};
      found->second = rebuild_.Append(std::move(pivot));
    }
    return found->second;
  }

  // What comes from a node that is unsupported, or was refused, has no type.
  static bool AnyUntyped(const std::vector<ValueInfo>& inputs) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const ValueInfo& v) { return v.type.dtype == DType::kInvalid; });
  }

  const Graph& graph_;
  const KernelOptions& options_;
  Rebuild rebuild_;
  std::vector<std::vector<ValueInfo>> values_;
  std::vector<std::vector<bool>> dead_;
  bool branches_;                   // the graph has Switches
  std::map<ValueRef, int> pivots_;  // output of a Switch -> an Identity of it, in the new graph
};

}  // namespace

absl::Status FoldConstants(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options) {
  const FoldingScope scope(MostFolded(*graph));
  ConstantFolder folder(*graph, options);
  FLOE_ASSIGN_OR_RETURN(Graph folded, folder.Run(inputs));
  *graph = std::move(folded);
  return absl::OkStatus();
}

}  // namespace floe
