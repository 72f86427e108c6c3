#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "model/op_def.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// Which of graph.inputs the roots depend on, by position.
std::vector<bool> Reached(const Graph& graph, const std::vector<int>& roots) {
  std::vector<bool> seen(graph.size(), false);
  for (int root : roots) seen[root] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!seen[i]) continue;
    for (const ValueRef& in : graph.node(i).inputs) seen[in.node] = true;
    for (int control : graph.node(i).control_inputs) seen[control] = true;
  }
  std::vector<bool> reached;
  for (int input : graph.inputs) reached.push_back(seen[input]);
  return reached;
}

std::vector<int> Effects(const Graph& graph) {
  std::vector<int> nodes;
  for (int i = 0; i < graph.size(); ++i) {
    if (HasEffect(graph.node(i))) nodes.push_back(i);
  }
  return nodes;
}

// The graph without some of its inputs: those with a constant have its value, the others no reader.
std::shared_ptr<const Graph> WithoutInputs(const Graph& graph, const std::vector<bool>& drop,
                                           const std::vector<const Tensor*>& constants) {
  auto less = std::make_shared<Graph>(graph);
  less->inputs.clear();
  for (size_t k = 0; k < drop.size(); ++k) {
    const int input = graph.inputs[k];
    if (!drop[k]) {
      less->inputs.push_back(input);
    } else if (constants[k] != nullptr) {
      const std::string name = graph.node(input).name;
      less->mutable_node(input) = ConstNode(name, *constants[k]);
    }
  }
  return less;
}

class Specializer {
 public:
  explicit Specializer(const Graph& graph) : graph_(graph), rebuild_(graph) {
    for (const Node& node : graph.nodes()) {
      for (const ValueRef& in : node.inputs) read_.insert(in);
    }
    read_.insert(graph.outputs.begin(), graph.outputs.end());
  }

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      const bool done = node.op->name == "While"  ? Loop(i)
                        : !node.subgraphs.empty() ? Branches(i)
                                                  : false;
      if (!done) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  bool Loop(int i) {
    Node node = graph_.node(i);
    const size_t n = node.inputs.size();
    if (node.subgraphs.size() != 2) return false;
    const auto condition_graph = node.subgraphs[0], body_graph = node.subgraphs[1];
    const Graph &condition = *condition_graph, &body = *body_graph;
    if (condition.inputs.size() != n || body.inputs.size() != n || body.outputs.size() != n ||
        condition.outputs.size() != 1)
      return false;
    const std::vector<bool> passed = PassedOn(body);
    std::vector<bool> drop = Unneeded(i, condition, body, passed);
    std::vector<const Tensor*> constants(n, nullptr);
    for (size_t k = 0; k < n; ++k) {
      if (passed[k]) constants[k] = ConstantOf(graph_, node.inputs[k]);
      drop[k] = drop[k] || constants[k] != nullptr;
    }
    // A loop has one variable at least.
    if (std::find(drop.begin(), drop.end(), false) == drop.end()) drop[0] = false;

    Graph smaller = *WithoutInputs(body, drop, constants);
    smaller.outputs.clear();
    std::vector<int> position(n, -1);
    for (size_t k = 0; k < n; ++k) {
      if (drop[k]) continue;
      position[k] = static_cast<int>(smaller.outputs.size());
      smaller.outputs.push_back(body.outputs[k]);
    }
    node.inputs = Kept(node.inputs, drop);
    node.num_outputs = static_cast<int>(node.inputs.size());
    node.subgraphs = {Pruned(*WithoutInputs(condition, drop, constants)), Pruned(smaller)};
    const int index = rebuild_.Emit(i, std::move(node));
    for (size_t k = 0; k < n; ++k) {
      const int output = static_cast<int>(k);
      // What stays unchanged comes out as it went in.
      if (passed[k]) {
        rebuild_.Replace(i, output, rebuild_.Map(graph_.node(i).inputs[k]));
      } else {
        rebuild_.Replace(i, output, drop[k] ? ValueRef{} : ValueRef{index, position[k]});
      }
    }
    return true;
  }

  bool Branches(int i) {
    Node node = graph_.node(i);
    if (node.inputs.empty()) return false;
    const size_t n = node.inputs.size() - 1;  // the first chooses the branch
    std::vector<bool> drop(n, true);
    std::vector<const Tensor*> constants(n, nullptr);
    for (size_t k = 0; k < n; ++k) constants[k] = ConstantOf(graph_, node.inputs[k + 1]);
    for (const auto& branch : node.subgraphs) {
      if (branch->inputs.size() != n) return false;
      std::vector<int> roots = Effects(*branch);
      for (const ValueRef& out : branch->outputs) roots.push_back(out.node);
      const std::vector<bool> reached = Reached(*branch, roots);
      for (size_t k = 0; k < n; ++k) drop[k] = drop[k] && (!reached[k] || constants[k] != nullptr);
    }
    for (auto& branch : node.subgraphs) branch = Pruned(*WithoutInputs(*branch, drop, constants));
    drop.insert(drop.begin(), false);
    node.inputs = Kept(node.inputs, drop);
    rebuild_.Emit(i, std::move(node));
    return true;
  }

  std::vector<ValueRef> Kept(const std::vector<ValueRef>& inputs,
                             const std::vector<bool>& drop) const {
    std::vector<ValueRef> kept;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!drop[k]) kept.push_back(rebuild_.Map(inputs[k]));
    }
    return kept;
  }

  static std::shared_ptr<const Graph> Pruned(Graph graph) {
    Prune(&graph);
    return std::make_shared<const Graph>(std::move(graph));
  }

  // Variables that every iteration gives back as it got them.
  static std::vector<bool> PassedOn(const Graph& body) {
    std::vector<bool> passed;
    for (size_t k = 0; k < body.outputs.size(); ++k) {
      ValueRef value = body.outputs[k];
      while (body.node(value.node).op->name == "Identity") value = body.node(value.node).inputs[0];
      passed.push_back(value == ValueRef{body.inputs[k], 0});
    }
    return passed;
  }

  // Variables that neither the condition, nor an effect, nor a value read afterwards depends on.
  std::vector<bool> Unneeded(int i, const Graph& condition, const Graph& body,
                             const std::vector<bool>& passed) const {
    std::vector<int> roots = Effects(condition);
    roots.push_back(condition.outputs[0].node);
    std::vector<bool> needed = Reached(condition, roots);
    std::vector<int> body_roots = Effects(body);
    for (size_t k = 0; k < needed.size(); ++k) {
      if (!passed[k] && read_.count({i, static_cast<int>(k)}) != 0) needed[k] = true;
    }
    for (bool grows = true; grows;) {
      std::vector<int> all = body_roots;
      for (size_t k = 0; k < needed.size(); ++k) {
        if (needed[k]) all.push_back(body.outputs[k].node);
      }
      const std::vector<bool> reached = Reached(body, all);
      grows = false;
      for (size_t k = 0; k < needed.size(); ++k) {
        grows = grows || (reached[k] && !needed[k]);
        needed[k] = needed[k] || reached[k];
      }
    }
    needed.flip();
    return needed;
  }

  const Graph& graph_;
  std::set<ValueRef> read_;
  Rebuild rebuild_;
};

}  // namespace

void SpecializeSubgraphs(Graph* graph) {
  const bool any = std::any_of(graph->nodes().begin(), graph->nodes().end(),
                               [](const Node& node) { return !node.subgraphs.empty(); });
  if (any) *graph = Specializer(*graph).Run();
}

}  // namespace floe
