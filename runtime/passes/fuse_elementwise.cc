#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "model/ops/fused_elementwise.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// FusedBatchNorm with constant statistics as (x - mean) * factor + offset, which is how its kernel
// computes it.
class NormSplitter {
 public:
  NormSplitter(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), uses_(graph), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (!Split(i)) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  bool Split(int i) {
    const Node& node = graph_.node(i);
    if (node.op->name.rfind("FusedBatchNorm", 0) != 0 || node.inputs.size() != 5 ||
        node.attrs.Bool("is_training", true) || !uses_.first_output_only[i])
      return false;
    const TensorType& x = analysis_.at(node.inputs[0]).type;
    const bool first = node.attrs.String("data_format", "NHWC").substr(0, 2) == "NC";
    if (x.dtype != DType::kFloat32 || !x.shape.rank_known() || x.shape.rank() < 4) return false;
    const Dim channels = x.shape.dim(first ? 1 : x.shape.rank() - 1);
    if (!channels.concrete()) return false;
    const float* p[4];  // scale, offset, mean, variance
    for (int k = 0; k < 4; ++k) {
      const Tensor* constant = ConstantOf(graph_, node.inputs[k + 1]);
      if (constant == nullptr || constant->dtype() != DType::kFloat32 ||
          constant->shape() != Shape({channels.size()}))
        return false;
      p[k] = constant->as<float>();
    }
    Shape shape({channels.size()});
    for (int k = 2; first && k < x.shape.rank(); ++k) shape.push_back(1);
    const Tensor mean = Tensor::Allocate(DType::kFloat32, shape),
                 factor = Tensor::Allocate(DType::kFloat32, shape),
                 offset = Tensor::Allocate(DType::kFloat32, shape);
    const float epsilon = node.attrs.Float("epsilon", 1e-4f);
    for (int64_t c = 0; c < channels.size(); ++c) {
      Write(mean)[c] = p[2][c];
      Write(factor)[c] = p[0][c] / std::sqrt(p[3][c] + epsilon);
      Write(offset)[c] = p[1][c];
    }
    const ValueRef centered = Step("Sub", i, "/centered", rebuild_.Map(node.inputs[0]), mean);
    const ValueRef scaled = Step("Mul", i, "/scaled", centered, factor);
    rebuild_.Replace(i, 0, Step("Add", i, "", scaled, offset));
    return true;
  }

  static float* Write(const Tensor& t) { return const_cast<float*>(t.as<float>()); }

  ValueRef Step(const char* op, int i, const char* suffix, ValueRef x, const Tensor& constant) {
    const std::string name = absl::StrCat(graph_.node(i).name, suffix);
    Node node;
    node.name = name;
    node.op = FindOp(op);
    node.attrs.Set("T", DType::kFloat32);
    node.inputs = {x, {rebuild_.Append(ConstNode(absl::StrCat(name, "/", op), constant)), 0}};
    return {rebuild_.Append(std::move(node)), 0};
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const Uses uses_;
  Rebuild rebuild_;
};

bool IsShapeDType(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Could both shapes be one? What is not known is taken to be equal.
bool MayBeEqual(const SymShape& a, const SymShape& b) {
  if (!a.rank_known() || !b.rank_known()) return true;
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i).known() && b.dim(i).known() && a.dim(i) != b.dim(i)) return false;
  }
  return true;
}

class Fuser {
 public:
  Fuser(const Graph& graph, const Analysis& analysis, const KernelOptions& options)
      : graph_(graph),
        analysis_(analysis),
        options_(options),
        uses_(graph),
        group_(graph.size(), -1),
        rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) fusable_.push_back(IsFusable(i));
    for (int i = graph_.size() - 1; i >= 0; --i) {
      if (fusable_[i] && group_[i] < 0) Collect(i);
    }
    for (int i = 0; i < graph_.size(); ++i) {
      const auto members = members_.find(i);
      if (members != members_.end()) {
        Emit(i, members->second);
      } else {
        rebuild_.Keep(i);
      }
    }
    return rebuild_.Finish();
  }

 private:
  // The op as a step: a BiasAdd along the last dim adds as Add does.
  const OpDef* StepOp(int i) const {
    const Node& node = graph_.node(i);
    if (node.op->name != "BiasAdd") return node.op;
    const SymShape &x = analysis_.at(node.inputs[0]).type.shape,
                   &bias = analysis_.at(node.inputs[1]).type.shape;
    const bool last = node.attrs.String("data_format") != "NCHW" && x.rank_known() &&
                      x.rank() >= 2 && bias.rank_known() && bias.rank() == 1 &&
                      bias.dim(0).concrete() && bias.dim(0) == x.dim(x.rank() - 1);
    return last ? FindOp("Add") : node.op;
  }

  bool IsFusable(int i) {
    const Node& node = graph_.node(i);
    const OpDef* op = StepOp(i);
    if (!ops::MayBeFused(*op) || !node.control_inputs.empty() || node.num_outputs != 1 ||
        static_cast<int>(node.inputs.size()) != op->max_inputs)
      return false;
    const ValueInfo& out = analysis_.values[i][0];
    // Integers are mostly shapes, whose values inference follows from op to op.
    if (DTypeSize(out.type.dtype) == 0 || IsShapeDType(out.type.dtype) || out.has_constant())
      return false;
    std::vector<ValueInfo> in;
    for (const ValueRef& ref : node.inputs) {
      in.push_back(analysis_.at(ref));
      if (DTypeSize(in.back().type.dtype) == 0) return false;
    }
    return CanBeStep(i, *op, in);
  }

  // Whether the target can compute the node as the only step of a FusedElementwise.
  bool CanBeStep(int i, const OpDef& op, const std::vector<ValueInfo>& inputs) {
    const auto key = std::make_tuple(&op, inputs[0].type.dtype, graph_.node(i).attrs.Type("DstT"));
    const auto known = can_be_step_.find(key);
    if (known != can_be_step_.end()) return known->second;
    std::vector<int> operands(inputs.size());
    std::iota(operands.begin(), operands.end(), 0);
    const Node fused = FusedOf({StepOf(i, std::move(operands))});
    return can_be_step_[key] = CanCompute({fused, inputs, options_});
  }

  ops::FusedStep StepOf(int i, std::vector<int> operands) const {
    ops::FusedStep step;
    step.node.op = StepOp(i);
    step.node.attrs.Set("alpha", graph_.node(i).attrs.Float("alpha", 0.2f));
    if (step.node.op->name == "Cast")
      step.node.attrs.Set("DstT", graph_.node(i).attrs.Type("DstT"));
    step.operands = std::move(operands);
    return step;
  }

  static Node FusedOf(const std::vector<ops::FusedStep>& steps) {
    Node node;
    node.op = FindOp("FusedElementwise");
    ops::SetFusedSteps(steps, &node.attrs);
    return node;
  }

  // The largest group that ends in `root`: nothing outside it reads a member's value.
  void Collect(int root) {
    std::set<int> members = {root};
    std::priority_queue<int> candidates;  // readers stand behind what they read
    const auto add_producers = [&](int i) {
      for (const ValueRef& in : graph_.node(i).inputs) candidates.push(in.node);
    };
    add_producers(root);
    while (!candidates.empty() && members.size() < static_cast<size_t>(ops::kMaxFusedSteps)) {
      const int i = candidates.top();
      candidates.pop();
      if (members.count(i) != 0 || !fusable_[i] || group_[i] >= 0 || uses_.is_output[i]) continue;
      const bool inside = std::all_of(uses_.users[i].begin(), uses_.users[i].end(),
                                      [&](int user) { return members.count(user) != 0; });
      if (!inside ||
          !MayBeEqual(analysis_.values[i][0].type.shape, analysis_.values[root][0].type.shape))
        continue;
      members.insert(i);
      if (Inputs(root, members).size() > static_cast<size_t>(ops::kMaxFusedInputs)) {
        members.erase(i);
      } else {
        add_producers(i);
      }
    }
    if (members.size() < 2 || !CanWriteOver(root, Inputs(root, members))) return;
    for (int i : members) group_[i] = root;
    members_[root] = {members.begin(), members.end()};
  }

  // What the members read from outside, once each. In front one of the output's type and, where it
  // is known, shape: it may be written over.
  std::vector<ValueRef> Inputs(int root, const std::set<int>& members) const {
    std::vector<ValueRef> inputs;
    for (int i : members) {
      for (const ValueRef& in : graph_.node(i).inputs) {
        if (members.count(in.node) == 0 &&
            std::find(inputs.begin(), inputs.end(), in) == inputs.end())
          inputs.push_back(in);
      }
    }
    const TensorType& out = analysis_.values[root][0].type;
    const auto better = [&](ValueRef ref) {
      const TensorType& type = analysis_.at(ref).type;
      return type.dtype != out.dtype                     ? 0
             : graph_.node(ref.node).op->name == "Const" ? 1
             : type.shape == out.shape                   ? 3
                                                         : 2;
    };
    const auto best = std::max_element(inputs.begin(), inputs.end(), [&](ValueRef a, ValueRef b) {
      return better(a) < better(b);
    });
    std::rotate(inputs.begin(), best, best + 1);
    return inputs;
  }

  // Bytes of equal number may be elements of another size, in another order: an input of the
  // output's dtype must stand in front.
  bool CanWriteOver(int root, const std::vector<ValueRef>& inputs) const {
    return analysis_.at(inputs[0]).type.dtype == analysis_.values[root][0].type.dtype;
  }

  void Emit(int root, const std::vector<int>& members) {
    const std::vector<ValueRef> inputs =
        Inputs(root, std::set<int>(members.begin(), members.end()));
    std::map<ValueRef, int> number;
    for (size_t k = 0; k < inputs.size(); ++k) number[inputs[k]] = static_cast<int>(k);
    std::vector<ops::FusedStep> steps;
    for (int i : members) {
      std::vector<int> operands;
      for (const ValueRef& in : graph_.node(i).inputs) operands.push_back(number.at(in));
      number[{i, 0}] = static_cast<int>(inputs.size() + steps.size());
      steps.push_back(StepOf(i, std::move(operands)));
    }
    Node node = FusedOf(steps);
    node.name = graph_.node(root).name;
    for (const ValueRef& in : inputs) node.inputs.push_back(rebuild_.Map(in));
    rebuild_.Emit(root, std::move(node));
  }

  const Graph& graph_;
  const Analysis& analysis_;
  const KernelOptions& options_;
  const Uses uses_;
  std::vector<bool> fusable_;
  std::vector<int> group_;                   // by node: the last node of its group, or -1
  std::map<int, std::vector<int>> members_;  // by that node, in order
  std::map<std::tuple<const OpDef*, DType, DType>, bool> can_be_step_;
  Rebuild rebuild_;
};

}  // namespace

absl::Status FuseElementwise(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options) {
  FLOE_ASSIGN_OR_RETURN(Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  const int before = graph->size();
  Graph split = NormSplitter(*graph, analysis).Run();
  if (split.size() != before) {
    FLOE_ASSIGN_OR_RETURN(analysis, AnalyzeWithRows(split, inputs, options));
  }
  *graph = Fuser(split, analysis, options).Run();
  return absl::OkStatus();
}

}  // namespace floe
