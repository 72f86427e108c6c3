// The form that TensorFlow's while_loop writes, for each variable of a frame:
//   Enter -> Merge(., NextIteration) -> Switch(., LoopCond) -> [0] Exit
//                                                           -> [1] body -> NextIteration
// and for each value the loop only reads: Enter(is_constant). LoopCond reads the test of the
// Merges.
#include "model/import/graphdef/structure_loops.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/op_def.h"

namespace floe {
namespace {

struct Variable {
  int enter = -1, merge = -1, next = -1,
      exchange = -1;  // nodes; exchange: the Switch, -1 when nothing reads past the test
  std::vector<int> exits;
};

struct Loop {
  std::string name;
  int condition = -1;  // LoopCond
  std::vector<Variable> variables;
  std::vector<int> invariants;  // Enter nodes
};

bool IsLoopOp(const Node& node) {
  const std::string& op = node.op->name;
  return op == "Enter" || op == "Exit" || op == "NextIteration" || op == "LoopCond";
}

class LoopStructurer {
 public:
  explicit LoopStructurer(Graph* graph) : graph_(*graph) {}

  absl::Status Run() {
    while (true) {
      FLOE_RETURN_IF_ERROR(FindLoops());
      if (loops_.empty()) return CheckComplete();
      FLOE_ASSIGN_OR_RETURN(const Loop* loop, Innermost());
      FLOE_RETURN_IF_ERROR(Convert(*loop));
    }
  }

  // Takes out what the Whiles have replaced; returns each node's new number, -1 for those.
  std::vector<int> RemoveLeftovers() {
    removed_.resize(graph_.size(), false);
    RemoveDeadEnds();
    std::vector<int> position(graph_.size(), -1);
    int next = 0;
    for (int i = 0; i < graph_.size(); ++i) {
      if (!removed_[i]) position[i] = next++;
    }
    Graph kept;
    for (int i = 0; i < graph_.size(); ++i) {
      if (removed_[i]) continue;
      Node node = std::move(graph_.mutable_node(i));
      for (ValueRef& in : node.inputs) in.node = position[in.node];
      std::vector<int> controls;
      for (int control : node.control_inputs) {
        if (position[control] >= 0) controls.push_back(position[control]);
      }
      node.control_inputs = std::move(controls);
      kept.Add(std::move(node));
    }
    for (int input : graph_.inputs) kept.inputs.push_back(position[input]);
    graph_ = std::move(kept);
    return position;
  }

 private:
  absl::Status Refuse(const Node& node, const std::string& frame, const std::string& why) const {
    return absl::UnimplementedError(absl::StrCat("node ", Quoted(node.name), " (", node.op->name,
                                                 ") of while frame ", Quoted(frame),
                                                 ": this loop cannot be structured: ", why));
  }

  absl::Status CheckComplete() const {
    for (const Node& node : graph_.nodes()) {
      if (!IsLoopOp(node)) continue;
      return absl::UnimplementedError(absl::StrCat("node ", Quoted(node.name), " (", node.op->name,
                                                   ") belongs to no complete while frame"));
    }
    return absl::OkStatus();
  }

  absl::Status FindLoops() {
    loops_.clear();
    users_.assign(graph_.size(), {});
    for (int i = 0; i < graph_.size(); ++i) {
      for (const ValueRef& in : graph_.node(i).inputs) users_[in.node].push_back(i);
    }
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (node.op->name != "Enter") continue;
      const std::string frame = node.attrs.String("frame_name");
      Loop& loop = loops_[frame];
      loop.name = frame;
      int merge = -1;
      for (int user : users_[i]) {
        const Node& candidate = graph_.node(user);
        if (candidate.op->name == "Merge" && candidate.inputs.size() == 2 &&
            graph_.node(candidate.inputs[1].node).op->name == "NextIteration")
          merge = user;
      }
      if (merge < 0) {
        loop.invariants.push_back(i);
      } else {
        FLOE_RETURN_IF_ERROR(AddVariable(&loop, i, merge));
      }
    }
    for (auto& [frame, loop] : loops_) {
      if (loop.condition < 0)
        return Refuse(
            graph_.node(loop.variables.empty() ? loop.invariants[0] : loop.variables[0].enter),
            frame, "it has no LoopCond");
    }
    return absl::OkStatus();
  }

  absl::Status AddVariable(Loop* loop, int enter, int merge) {
    Variable variable{enter, merge, graph_.node(merge).inputs[1].node, -1, {}};
    for (int user : users_[merge]) {
      const Node& node = graph_.node(user);
      if (node.op->name != "Switch" || graph_.node(node.inputs[1].node).op->name != "LoopCond")
        continue;
      if (variable.exchange >= 0)
        return Refuse(node, loop->name, "a second Switch of one variable");
      variable.exchange = user;
      const int condition = node.inputs[1].node;
      if (loop->condition >= 0 && loop->condition != condition)
        return Refuse(node, loop->name, "two conditions");
      loop->condition = condition;
      for (int reader : users_[user]) {
        if (graph_.node(reader).op->name == "Exit") variable.exits.push_back(reader);
      }
    }
    loop->variables.push_back(std::move(variable));
    return absl::OkStatus();
  }

  // Where a loop's own subgraphs end: the number of the parameter that node stands for, or -1.
  static int Parameter(const Loop& loop, int node) {
    for (size_t k = 0; k < loop.variables.size(); ++k) {
      if (loop.variables[k].merge == node || loop.variables[k].exchange == node)
        return static_cast<int>(k);
    }
    for (size_t k = 0; k < loop.invariants.size(); ++k) {
      if (loop.invariants[k] == node) return static_cast<int>(loop.variables.size() + k);
    }
    return -1;
  }

  // Nodes that the loop's test and body consist of, by walking back from their results to the
  // parameters; each after those it reads. (A While made of an inner frame stands at the end of
  // graph_, behind its readers.)
  std::vector<int> Ordered(const Loop& loop, const std::vector<ValueRef>& results) const {
    std::vector<int> order;
    std::vector<bool> seen(graph_.size(), false);
    std::vector<std::pair<int, size_t>> path;  // a node and how many of its inputs were visited
    const auto visit = [&](int i) {
      if (seen[i] || Parameter(loop, i) >= 0) return;
      seen[i] = true;
      path.emplace_back(i, 0);
    };
    for (const ValueRef& result : results) {
      visit(result.node);
      while (!path.empty()) {
        const int i = path.back().first;
        const Node& node = graph_.node(i);
        const size_t next = path.back().second++;
        if (next < node.inputs.size()) {
          visit(node.inputs[next].node);
        } else if (next - node.inputs.size() < node.control_inputs.size()) {
          const int control = node.control_inputs[next - node.inputs.size()];
          if (!Gone(control)) visit(control);
        } else {
          order.push_back(i);
          path.pop_back();
        }
      }
    }
    return order;
  }
  // Whether a While has replaced the node.
  bool Gone(int i) const { return i < static_cast<int>(removed_.size()) && removed_[i]; }

  std::vector<bool> Inside(const Loop& loop, const std::vector<ValueRef>& results) const {
    std::vector<bool> inside(graph_.size(), false);
    for (const int i : Ordered(loop, results)) inside[i] = true;
    return inside;
  }

  std::vector<ValueRef> BodyResults(const Loop& loop) const {
    std::vector<ValueRef> results;
    for (const Variable& variable : loop.variables)
      results.push_back(graph_.node(variable.next).inputs[0]);
    return results;
  }

  // A frame none of whose nodes belongs to another frame.
  absl::StatusOr<const Loop*> Innermost() const {
    const Node* blocked = nullptr;
    for (const auto& [frame, loop] : loops_) {
      std::vector<ValueRef> results = BodyResults(loop);
      results.push_back(graph_.node(loop.condition).inputs[0]);
      const std::vector<bool> inside = Inside(loop, results);
      bool clean = true;
      for (int i = 0; i < graph_.size() && clean; ++i) {
        if (!inside[i] || !IsLoopOp(graph_.node(i)) || i == loop.condition) continue;
        clean = false;
        blocked = &graph_.node(i);
      }
      if (clean) return &loop;
    }
    return Refuse(*blocked, blocked->attrs.String("frame_name"), "its frames are not nested");
  }

  // The nodes behind `results` as a graph of the loop's parameters.
  absl::StatusOr<std::shared_ptr<const Graph>> Extract(const Loop& loop,
                                                       const std::vector<ValueRef>& results) const {
    Graph graph;
    std::vector<int> position(graph_.size(), -1);
    const auto parameter_node = [&](int enter) {
      Node input;
      input.name = graph_.node(enter).name;
      input.op = FindOp("Input");
      const int index = graph.Add(std::move(input));
      graph.inputs.push_back(index);
    };
    for (const Variable& variable : loop.variables) parameter_node(variable.enter);
    for (int invariant : loop.invariants) parameter_node(invariant);
    const auto map = [&](ValueRef ref) {
      const int parameter = Parameter(loop, ref.node);
      return parameter >= 0 ? ValueRef{graph.inputs[parameter], 0}
                            : ValueRef{position[ref.node], ref.output};
    };
    for (const int i : Ordered(loop, results)) {
      Node copy = graph_.node(i);
      if (copy.op->name == "Input" || copy.op->name == "PlaceholderWithDefault") {
        return Refuse(graph_.node(i), loop.name, "it enters the loop without an Enter");
      }
      if (Gone(i)) return Refuse(graph_.node(i), loop.name, "it belongs to another frame, too");
      for (ValueRef& in : copy.inputs) {
        in = map(in);
        if (in.node < 0)
          return Refuse(graph_.node(i), loop.name,
                        "a value goes around the loop outside its variables");
      }
      std::vector<int> controls;
      for (int control : copy.control_inputs) {
        if (Parameter(loop, control) < 0 && position[control] >= 0)
          controls.push_back(position[control]);
      }
      copy.control_inputs = std::move(controls);
      if (i == loop.condition) copy.op = FindOp("Identity");
      position[i] = graph.Add(std::move(copy));
    }
    for (const ValueRef& result : results) graph.outputs.push_back(map(result));
    return std::make_shared<const Graph>(std::move(graph));
  }

  absl::Status Convert(const Loop& loop) {
    Node node;
    node.name = absl::StrCat(loop.name, "/While");
    node.op = FindOp("While");
    node.attrs.Set("scalar_bool", true);  // as a Switch demands
    std::vector<ValueRef> body_results = BodyResults(loop);
    for (const Variable& variable : loop.variables)
      node.inputs.push_back(graph_.node(variable.enter).inputs[0]);
    for (int invariant : loop.invariants) node.inputs.push_back(graph_.node(invariant).inputs[0]);
    for (int invariant : loop.invariants) body_results.push_back({invariant, 0});
    FLOE_ASSIGN_OR_RETURN(auto condition, Extract(loop, {graph_.node(loop.condition).inputs[0]}));
    FLOE_ASSIGN_OR_RETURN(auto body, Extract(loop, body_results));
    node.subgraphs = {std::move(condition), std::move(body)};
    node.num_outputs = static_cast<int>(node.inputs.size());
    std::vector<ValueRef> all_results = body_results;
    all_results.push_back(graph_.node(loop.condition).inputs[0]);
    const std::vector<bool> inside = Inside(loop, all_results);
    const int index = graph_.Add(std::move(node));
    removed_.resize(graph_.size(), false);
    for (size_t i = 0; i < inside.size(); ++i) removed_[i] = removed_[i] || inside[i];
    for (size_t k = 0; k < loop.variables.size(); ++k) {
      const Variable& variable = loop.variables[k];
      for (int exit : variable.exits) Become(exit, {index, static_cast<int>(k)});
      for (int gone : {variable.enter, variable.merge, variable.next, variable.exchange}) {
        if (gone >= 0) Leave(gone);
      }
    }
    for (int invariant : loop.invariants) Leave(invariant);
    Leave(loop.condition);
    return absl::OkStatus();
  }

  // What reads a frame's values and leads to none of its results belongs to the frame too: such
  // values live in an iteration, nobody can fetch them.
  void RemoveDeadEnds() {
    for (bool changed = true; changed;) {
      changed = false;
      for (int i = 0; i < graph_.size(); ++i) {
        const auto& inputs = graph_.node(i).inputs;
        if (removed_[i] || std::none_of(inputs.begin(), inputs.end(),
                                        [&](const ValueRef& in) { return removed_[in.node]; }))
          continue;
        removed_[i] = true;
        changed = true;
      }
    }
  }

  // A node of the frame that the While replaces.
  void Leave(int i) {
    removed_[i] = true;
    Become(i, {});
    graph_.mutable_node(i).inputs.clear();
  }

  // The node turns into an Identity of `value`, with as many outputs as it had.
  void Become(int i, ValueRef value) {
    Node& node = graph_.mutable_node(i);
    node.inputs.assign(node.num_outputs, value);
    node.op = FindOp(node.num_outputs == 1 ? "Identity" : "IdentityN");
    node.control_inputs.clear();
    node.attrs = {};
  }

  Graph& graph_;
  std::map<std::string, Loop> loops_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> removed_;
};

}  // namespace

absl::Status StructureLoops(Graph* graph, std::vector<int>* values) {
  const bool any = std::any_of(graph->nodes().begin(), graph->nodes().end(), IsLoopOp);
  if (!any) return absl::OkStatus();
  LoopStructurer structurer(graph);
  FLOE_RETURN_IF_ERROR(structurer.Run());
  const std::vector<int> position = structurer.RemoveLeftovers();
  std::vector<int> moved;
  if (!SortTopologically(graph, &moved))
    return absl::InvalidArgumentError("a while frame leaves a cycle behind");
  for (int& value : *values) {
    if (value >= 0) value = position[value] < 0 ? -1 : moved[position[value]];
  }
  return absl::OkStatus();
}

}  // namespace floe
