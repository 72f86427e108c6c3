// v1 `cond`: every value lives under a set of (predicate, side) conditions, which Switch adds and
// Merge removes. Merges of one predicate under the same outer conditions become one If; inner ones
// first.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

using Conditions = std::map<ValueRef, bool>;  // predicate -> side

absl::Status CannotStructure(const Node& node, const std::string& why) {
  return absl::UnimplementedError(absl::StrCat("node '", node.name, "' (", node.op->name,
                                               "): this conditional cannot be structured: ", why));
}

class Structurer {
 public:
  explicit Structurer(Graph* graph) : graph_(*graph) {}

  // One If a call; false when no Merge is left.
  absl::StatusOr<bool> Step() {
    FLOE_RETURN_IF_ERROR(FindConditions());
    int innermost = -1;
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.node(i).op->name != "Merge") continue;
      if (innermost < 0 || merges_[i].outer.size() > merges_[innermost].outer.size()) innermost = i;
    }
    if (innermost < 0) return false;
    FLOE_RETURN_IF_ERROR(Convert(Group(innermost)));
    return true;
  }

  absl::Status CheckOutputs() {
    FLOE_RETURN_IF_ERROR(FindConditions());
    for (const ValueRef& out : graph_.outputs) {
      const Conditions conditions = ConditionsOf(out);
      if (!conditions.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "output '", TensorNameOf(graph_.node(out.node).name, out.output),
            "' is dead unless predicate '", graph_.node(conditions.begin()->first.node).name,
            "' is ", conditions.begin()->second ? "true" : "false"));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct MergeInfo {
    ValueRef predicate;
    Conditions outer;
    int true_input = 0;
  };

  ValueRef Predicate(ValueRef ref) const {
    while (graph_.node(ref.node).op->name == "Identity") ref = graph_.node(ref.node).inputs[0];
    return ref;
  }

  Conditions ConditionsOf(ValueRef ref) const {
    Conditions conditions = conditions_[ref.node];
    const Node& node = graph_.node(ref.node);
    if (node.op->name == "Switch") conditions[Predicate(node.inputs[1])] = ref.output == 1;
    return conditions;
  }

  absl::Status FindConditions() {
    conditions_.assign(graph_.size(), {});
    merges_.clear();
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (node.op->name == "Input") continue;  // fed, whatever its control edges say
      if (node.op->name == "Merge") {
        FLOE_ASSIGN_OR_RETURN(merges_[i], Match(node));
        conditions_[i] = merges_[i].outer;
        continue;
      }
      std::vector<ValueRef> sources = node.inputs;
      for (int control : node.control_inputs) sources.push_back({control, 0});
      for (const ValueRef& source : sources) {
        for (const auto& [predicate, side] : ConditionsOf(source)) {
          const auto [found, fresh] = conditions_[i].emplace(predicate, side);
          if (!fresh && found->second != side)
            return CannotStructure(node, absl::StrCat("it needs both sides of predicate '",
                                                      graph_.node(predicate.node).name, "'"));
        }
      }
    }
    return absl::OkStatus();
  }

  // The predicate on whose two sides the Merge's inputs live.
  absl::StatusOr<MergeInfo> Match(const Node& node) const {
    if (node.inputs.size() != 2)
      return CannotStructure(
          node, absl::StrCat("it joins ", node.inputs.size(), " values, only pairs are supported"));
    const Conditions a = ConditionsOf(node.inputs[0]), b = ConditionsOf(node.inputs[1]);
    for (const auto& [predicate, side] : a) {
      const auto other = b.find(predicate);
      if (other == b.end() || other->second == side) continue;
      Conditions rest_a = a, rest_b = b;
      rest_a.erase(predicate);
      rest_b.erase(predicate);
      if (rest_a != rest_b) continue;
      return MergeInfo{predicate, rest_a, side ? 0 : 1};
    }
    return CannotStructure(node, "its two inputs are not the two sides of one predicate");
  }

  std::vector<bool> Ancestors(int i) const {
    std::vector<bool> seen(graph_.size(), false);
    seen[i] = true;
    for (int k = i; k >= 0; --k) {
      if (!seen[k]) continue;
      for (const ValueRef& in : graph_.node(k).inputs) seen[in.node] = true;
    }
    return seen;
  }

  // All Merges that go into one If with `first`: the same predicate and outer conditions, none
  // needing another.
  std::vector<int> Group(int first) const {
    std::vector<int> group;
    for (const auto& [i, info] : merges_) {
      if (!(info.predicate == merges_.at(first).predicate) || info.outer != merges_.at(first).outer)
        continue;
      const std::vector<bool> ancestors = Ancestors(i);
      const bool dependent =
          std::any_of(group.begin(), group.end(), [&](int other) { return ancestors[other]; });
      if (!dependent) group.push_back(i);
    }
    return group;
  }

  struct Branch {
    Graph graph;
    std::map<ValueRef, int> captured;  // value outside -> Input node inside
    std::map<int, int> copied;         // node outside -> node inside
  };

  bool IsEntry(const Node& node, ValueRef predicate) const {
    return node.op->name == "Switch" && Predicate(node.inputs[1]) == predicate;
  }
  bool IsInside(int i, ValueRef predicate) const { return conditions_[i].count(predicate) != 0; }

  // Copies what `wanted` and the `effects` need from under the predicate into the branch; all else
  // is captured. Two scans over the nodes' order instead of recursion: a branch may be as deep as
  // the file likes.
  void CopyBranch(const std::vector<ValueRef>& wanted, const std::vector<int>& effects,
                  ValueRef predicate, Branch* branch, std::vector<ValueRef>* captures) {
    std::vector<bool> needed(graph_.size(), false);
    for (const ValueRef& ref : wanted) needed[ref.node] = true;
    for (int effect : effects) needed[effect] = true;
    for (int i = graph_.size() - 1; i >= 0; --i) {
      const Node& node = graph_.node(i);
      if (!needed[i] || (!IsInside(i, predicate) && !IsEntry(node, predicate))) continue;
      for (const ValueRef& in : node.inputs) needed[in.node] = true;
      for (int control : node.control_inputs) needed[control] = true;
    }
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!needed[i] || !IsInside(i, predicate) || IsEntry(node, predicate)) continue;
      Node copy = node;
      // Inside the branch control edges still say which effects a value waits for.
      copy.control_inputs.clear();
      for (int control : node.control_inputs) {
        if (node.op->name == "Const") break;  // waits for nothing
        const auto copied = branch->copied.find(control);
        if (copied != branch->copied.end()) copy.control_inputs.push_back(copied->second);
      }
      for (ValueRef& in : copy.inputs) in = Inside(in, predicate, branch, captures);
      branch->copied[i] = branch->graph.Add(std::move(copy));
    }
    for (const ValueRef& ref : wanted)
      branch->graph.outputs.push_back(Inside(ref, predicate, branch, captures));
  }

  // The branch's own name for a value.
  ValueRef Inside(ValueRef ref, ValueRef predicate, Branch* branch,
                  std::vector<ValueRef>* captures) const {
    while (IsEntry(graph_.node(ref.node), predicate)) ref = graph_.node(ref.node).inputs[0];
    const auto copied = branch->copied.find(ref.node);
    if (copied != branch->copied.end()) return {copied->second, ref.output};
    if (std::find(captures->begin(), captures->end(), ref) == captures->end())
      captures->push_back(ref);
    return {Capture(ref, branch), 0};
  }

  int Capture(ValueRef ref, Branch* branch) const {
    const auto [found, fresh] = branch->captured.emplace(ref, -1);
    if (fresh) {
      Node input;
      input.name = TensorNameOf(graph_.node(ref.node).name, ref.output);
      input.op = FindOp("Input");
      found->second = branch->graph.Add(std::move(input));
    }
    return found->second;
  }

  absl::Status Convert(const std::vector<int>& group) {
    const MergeInfo info = merges_.at(group.front());
    std::vector<ValueRef> captures;
    Branch branches[2];  // by side
    for (bool side : {true, false}) {
      std::vector<ValueRef> wanted;
      for (int merge : group) wanted.push_back(graph_.node(merge).inputs[MergeInput(merge, side)]);
      const std::vector<int> effects = Effects(group, info.predicate, side);
      CopyBranch(wanted, effects, info.predicate, &branches[side], &captures);
      AddValueIndexes(group, side, effects, &branches[side]);
    }
    Node node;
    node.name = graph_.node(group.front()).name;
    node.op = FindOp("If");
    node.inputs.push_back(info.predicate);
    for (const ValueRef& capture : captures) node.inputs.push_back(capture);
    for (bool side : {true, false}) {
      for (const ValueRef& capture : captures) {
        const int input = Capture(capture, &branches[side]);
        branches[side].graph.inputs.push_back(input);
      }
      node.subgraphs.push_back(std::make_shared<const Graph>(std::move(branches[side].graph)));
    }
    node.num_outputs = static_cast<int>(2 * group.size());
    node.control_inputs = Pivots(info.outer);
    // Effects happen in the branch now, and once.
    for (const Branch& branch : branches) {
      for (const auto& [outside, inside] : branch.copied) {
        if (!HasEffect(graph_.node(outside))) continue;
        graph_.mutable_node(outside).op = FindOp("NoOp");
        graph_.mutable_node(outside).inputs.clear();
        graph_.mutable_node(outside).subgraphs.clear();
      }
    }
    return Splice(group, std::move(node));
  }

  // What the Merges wait for under one side of the predicate.
  std::vector<int> Effects(const std::vector<int>& group, ValueRef predicate, bool side) const {
    std::vector<int> effects;
    for (int merge : group) {
      for (int control : graph_.node(merge).control_inputs) {
        const auto found = conditions_[control].find(predicate);
        if (found != conditions_[control].end() && found->second == side)
          effects.push_back(control);
      }
    }
    return effects;
  }

  // Nodes that are alive under these conditions: an If must not lose them, whatever it reads.
  std::vector<int> Pivots(const Conditions& conditions) {
    std::vector<int> pivots;
    for (const auto& [predicate, side] : conditions) {
      Node exchange;
      exchange.name = absl::StrCat(graph_.node(predicate.node).name, "/switch");
      exchange.op = FindOp("Switch");
      exchange.inputs = {predicate, predicate};
      exchange.num_outputs = 2;
      Node pivot;
      pivot.name = absl::StrCat(exchange.name, "/pivot");
      pivot.op = FindOp("Identity");
      pivot.inputs = {{graph_.Add(std::move(exchange)), side ? 1 : 0}};
      pivots.push_back(graph_.Add(std::move(pivot)));
    }
    return pivots;
  }

  int MergeInput(int merge, bool side) const {
    return side ? merges_.at(merge).true_input : 1 - merges_.at(merge).true_input;
  }

  // Outputs of a branch: value and index of each Merge in turn. The indexes wait for the effects,
  // as the Merges did.
  void AddValueIndexes(const std::vector<int>& group, bool side, const std::vector<int>& effects,
                       Branch* branch) const {
    std::vector<int> controls;
    for (int effect : effects) {
      if (const auto copied = branch->copied.find(effect); copied != branch->copied.end())
        controls.push_back(copied->second);
    }
    std::vector<ValueRef> outputs;
    for (size_t k = 0; k < group.size(); ++k) {
      Node index;
      index.name = graph_.node(group[k]).name + "/value_index";
      index.op = FindOp("Const");
      index.attrs.Set("dtype", DType::kInt32);
      index.attrs.Set("value", Tensor::Scalar<int32_t>(DType::kInt32, MergeInput(group[k], side)));
      index.control_inputs = controls;
      outputs.push_back(branch->graph.outputs[k]);
      outputs.push_back({branch->graph.Add(std::move(index)), 0});
    }
    branch->graph.outputs = std::move(outputs);
  }

  // The first Merge's place becomes the If; uses of the others are sent there.
  absl::Status Splice(const std::vector<int>& group, Node node) {
    const int at = group.front();
    std::map<ValueRef, ValueRef> moved;
    for (size_t k = 0; k < group.size(); ++k) {
      for (int output : {0, 1}) moved[{group[k], output}] = {at, static_cast<int>(2 * k) + output};
    }
    const auto redirect = [&](ValueRef& ref) {
      const auto found = moved.find(ref);
      if (found != moved.end()) ref = found->second;
    };
    graph_.mutable_node(at) = std::move(node);
    for (Node& user : graph_.mutable_nodes()) {
      for (ValueRef& in : user.inputs) redirect(in);
    }
    for (ValueRef& out : graph_.outputs) redirect(out);
    for (size_t k = 1; k < group.size(); ++k)
      graph_.mutable_node(group[k]).inputs.assign(1, {at, 0});
    for (size_t k = 1; k < group.size(); ++k) graph_.mutable_node(group[k]).control_inputs.clear();
    for (size_t k = 1; k < group.size(); ++k) graph_.mutable_node(group[k]).num_outputs = 1;
    for (size_t k = 1; k < group.size(); ++k) graph_.mutable_node(group[k]).op = FindOp("Identity");
    if (!SortTopologically(&graph_)) return absl::InternalError("a conditional made a cycle");
    Prune(&graph_);
    return absl::OkStatus();
  }

  Graph& graph_;
  std::vector<Conditions> conditions_;  // by node: of its inputs
  std::map<int, MergeInfo> merges_;
};

}  // namespace

absl::Status StructureConditionals(Graph* graph) {
  Structurer structurer(graph);
  while (true) {
    FLOE_ASSIGN_OR_RETURN(const bool more, structurer.Step());
    if (!more) break;
  }
  FLOE_RETURN_IF_ERROR(structurer.CheckOutputs());
  for (Node& node : graph->mutable_nodes()) node.control_inputs.clear();
  Prune(graph);
  return absl::OkStatus();
}

}  // namespace floe
