// v1 `cond`: every value lives under a set of (predicate, side) conditions, which Switch adds and
// Merge removes. Merges of one predicate under the same outer conditions become one If; inner ones
// first. SwitchN, with a side for each value of an index, makes a Case.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// Predicate -> side: the number of the Switch's output, 1 for true.
using Conditions = std::map<ValueRef, int>;

absl::Status CannotStructure(const Node& node, const std::string& why) {
  return absl::UnimplementedError(absl::StrCat("node ", Quoted(node.name), " (", node.op->name,
                                               "): this conditional cannot be structured: ", why));
}

// One class: the steps of one rewrite, over one graph and what has been found in it.
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
            "output ", Quoted(TensorNameOf(graph_.node(out.node).name, out.output)),
            " is dead unless predicate ", Quoted(graph_.node(conditions.begin()->first.node).name),
            " is ", SideName(conditions.begin()->first, conditions.begin()->second)));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct MergeInfo {
    ValueRef predicate;
    Conditions outer;
    std::vector<int> input_of;  // by side
  };

  static bool IsSwitch(const Node& node) {
    return node.op->name == "Switch" || node.op->name == "SwitchN";
  }
  bool IsIndex(ValueRef predicate) const { return indexes_.count(predicate) != 0; }
  size_t Sides(ValueRef predicate) const {
    return IsIndex(predicate) ? static_cast<size_t>(indexes_.at(predicate)) : 2;
  }
  std::string SideName(ValueRef predicate, int side) const {
    return IsIndex(predicate) ? absl::StrCat(side) : side == 1 ? "true" : "false";
  }

  ValueRef Predicate(ValueRef ref) const {
    while (graph_.node(ref.node).op->name == "Identity") ref = graph_.node(ref.node).inputs[0];
    return ref;
  }

  Conditions ConditionsOf(ValueRef ref) const {
    Conditions conditions = conditions_[ref.node];
    const Node& node = graph_.node(ref.node);
    if (IsSwitch(node)) conditions[Predicate(node.inputs[1])] = ref.output;
    return conditions;
  }

  absl::Status FindConditions() {
    conditions_.assign(graph_.size(), {});
    merges_.clear();
    indexes_.clear();
    for (const Node& node : graph_.nodes()) {
      if (node.op->name == "SwitchN") indexes_[Predicate(node.inputs[1])] = node.num_outputs;
    }
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
            return CannotStructure(node, absl::StrCat("it needs both sides of predicate ",
                                                      Quoted(graph_.node(predicate.node).name)));
        }
      }
    }
    return absl::OkStatus();
  }

  // The predicate on whose sides the Merge's inputs live, one on each.
  absl::StatusOr<MergeInfo> Match(const Node& node) const {
    for (const auto& [predicate, side] : ConditionsOf(node.inputs[0])) {
      MergeInfo info{predicate, {}, std::vector<int>(Sides(predicate), -1)};
      bool matches = node.inputs.size() == info.input_of.size();
      for (size_t k = 0; k < node.inputs.size() && matches; ++k) {
        Conditions rest = ConditionsOf(node.inputs[k]);
        const auto found = rest.find(predicate);
        matches = found != rest.end() && static_cast<size_t>(found->second) < Sides(predicate) &&
                  info.input_of[found->second] < 0;
        if (!matches) break;
        info.input_of[found->second] = static_cast<int>(k);
        rest.erase(found);
        if (k == 0)
          info.outer = std::move(rest);
        else
          matches = rest == info.outer;
      }
      if (matches) return info;
    }
    return CannotStructure(node, absl::StrCat("its ", node.inputs.size(),
                                              " inputs are not the sides of one predicate"));
  }

  std::vector<bool> Ancestors(int i) const {
    std::vector<bool> seen(graph_.size(), false);
    seen[i] = true;
    for (int k = i; k >= 0; --k) {
      if (!seen[k]) continue;
      for (const ValueRef& in : graph_.node(k).inputs) seen[in.node] = true;
      for (int control : graph_.node(k).control_inputs) seen[control] = true;
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
    std::set<int> waits;               // nodes outside that nodes inside have control edges from
  };

  bool IsEntry(const Node& node, ValueRef predicate) const {
    return IsSwitch(node) && Predicate(node.inputs[1]) == predicate;
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
      if (!needed[i]) continue;
      if (IsEntry(node, predicate)) {
        WaitAtEntry(node, branch);
        continue;
      }
      if (!IsInside(i, predicate)) continue;
      Node copy = node;
      // Inside the branch control edges still say which effects a value waits for.
      copy.control_inputs.clear();
      for (int control : node.control_inputs) {
        const auto copied = branch->copied.find(control);
        if (copied == branch->copied.end()) {
          if (!IsEntry(graph_.node(control), predicate)) branch->waits.insert(control);
        } else if (node.op->name != "Const") {  // a value that is known comes before any effect
          copy.control_inputs.push_back(copied->second);
        }
      }
      for (ValueRef& in : copy.inputs) in = Inside(in, predicate, branch, captures);
      branch->copied[i] = branch->graph.Add(std::move(copy));
    }
    for (const ValueRef& ref : wanted)
      branch->graph.outputs.push_back(Inside(ref, predicate, branch, captures));
  }

  // What a Switch waits for, and the Identities through which its predicate comes.
  void WaitAtEntry(const Node& entry, Branch* branch) const {
    branch->waits.insert(entry.control_inputs.begin(), entry.control_inputs.end());
    for (int i = entry.inputs[1].node; graph_.node(i).op->name == "Identity";
         i = graph_.node(i).inputs[0].node) {
      const std::vector<int>& controls = graph_.node(i).control_inputs;
      branch->waits.insert(controls.begin(), controls.end());
    }
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
    const bool index = IsIndex(info.predicate);
    // The subgraphs of a Case are in the order of the index, those of an If: taken, not taken.
    std::vector<int> sides(Sides(info.predicate));
    for (size_t k = 0; k < sides.size(); ++k) sides[k] = static_cast<int>(k);
    if (!index) std::reverse(sides.begin(), sides.end());
    std::vector<ValueRef> captures;
    std::vector<Branch> branches(sides.size());
    for (size_t b = 0; b < sides.size(); ++b) {
      std::vector<ValueRef> wanted;
      wanted.reserve(group.size());
      for (int merge : group)
        wanted.push_back(graph_.node(merge).inputs[merges_.at(merge).input_of[sides[b]]]);
      const std::vector<int> effects = Effects(group, info.predicate, sides[b]);
      CopyBranch(wanted, effects, info.predicate, &branches[b], &captures);
      AddValueIndexes(group, sides[b], effects, &branches[b]);
    }
    Node node;
    node.name = graph_.node(group.front()).name;
    node.op = FindOp(index ? "Case" : "If");
    if (!index) node.attrs.Set("scalar_bool", true);  // as a Switch demands
    node.inputs.push_back(info.predicate);
    for (const ValueRef& capture : captures) node.inputs.push_back(capture);
    for (Branch& branch : branches) {
      for (const ValueRef& capture : captures) {
        const int input = Capture(capture, &branch);
        branch.graph.inputs.push_back(input);
      }
      node.subgraphs.push_back(std::make_shared<const Graph>(std::move(branch.graph)));
    }
    node.num_outputs = static_cast<int>(2 * group.size());
    node.control_inputs = Pivots(info.outer);
    for (const Branch& branch : branches) {
      node.control_inputs.insert(node.control_inputs.end(), branch.waits.begin(),
                                 branch.waits.end());
      // Effects happen in the branch now, and once.
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
  std::vector<int> Effects(const std::vector<int>& group, ValueRef predicate, int side) const {
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
      exchange.op = FindOp(IsIndex(predicate) ? "SwitchN" : "Switch");
      exchange.inputs = {predicate, predicate};
      exchange.num_outputs = static_cast<int>(Sides(predicate));
      Node pivot;
      pivot.name = absl::StrCat(exchange.name, "/pivot");
      pivot.op = FindOp("Identity");
      pivot.inputs = {{graph_.Add(std::move(exchange)), side}};
      pivots.push_back(graph_.Add(std::move(pivot)));
    }
    return pivots;
  }

  // Outputs of a branch: value and index of each Merge in turn. The indexes wait for the effects,
  // as the Merges did.
  void AddValueIndexes(const std::vector<int>& group, int side, const std::vector<int>& effects,
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
      const int32_t value = merges_.at(group[k]).input_of[side];
      index.attrs.Set("value", Tensor::Scalar<int32_t>(DType::kInt32, value));
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
  std::map<ValueRef, int> indexes_;  // predicate of a SwitchN -> how many sides it has
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
