// Copies a graph node by node while values are replaced: what every pass that changes structure
// needs.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "model/graph.h"

namespace floe {

class Rebuild {
 public:
  explicit Rebuild(const Graph& old) : old_(old), emitted_(old.size(), -1), map_(old.size()) {}

  // Copies node `i` with its inputs mapped; all of them must have been mapped. Control edges to
  // nodes left out are dropped.
  int Keep(int i) {
    Node node = old_.node(i);
    for (ValueRef& in : node.inputs) in = Map(in);
    return Emit(i, std::move(node));
  }
  // Puts `node` (inputs already those of the new graph) in the place of old node `i`.
  int Emit(int i, Node node) {
    std::vector<int> controls;
    for (int control : old_.node(i).control_inputs) {
      const int now = emitted_[control] >= 0 ? emitted_[control] : Map({control, 0}).node;
      if (now >= 0) controls.push_back(now);
    }
    node.control_inputs = std::move(controls);
    const int outputs = node.num_outputs;
    const int index = out_.Add(std::move(node));
    emitted_[i] = index;
    map_[i].clear();
    for (int k = 0; k < std::max(outputs, 1); ++k) map_[i].push_back({index, k});
    return index;
  }
  // Appends a node that stands for no old one; `controls` are nodes of the new graph.
  int Append(Node node, std::vector<int> controls = {}) {
    node.control_inputs = std::move(controls);
    return out_.Add(std::move(node));
  }
  // Every use of old value (i, k) goes to `value` of the new graph.
  void Replace(int i, int k, ValueRef value) {
    if (static_cast<int>(map_[i].size()) <= k) map_[i].resize(k + 1);
    map_[i][k] = value;
  }
  ValueRef Map(ValueRef old) const {
    const auto& outputs = map_[old.node];
    return old.output < static_cast<int>(outputs.size()) ? outputs[old.output] : ValueRef{};
  }
  bool Mapped(ValueRef old) const { return Map(old).node >= 0; }
  const Graph& out() const { return out_; }

  // The new graph with inputs and outputs mapped.
  Graph Finish() {
    for (int input : old_.inputs) out_.inputs.push_back(Map({input, 0}).node);
    for (const ValueRef& output : old_.outputs) out_.outputs.push_back(Map(output));
    return std::move(out_);
  }

 private:
  const Graph& old_;
  Graph out_;
  std::vector<int> emitted_;  // the node that took the old one's place, or -1
  std::vector<std::vector<ValueRef>> map_;
};

// The graph in which make(i, match, &rebuild) stands in the place of each node i that `matches`
// names by its number. What only the old nodes read stays, for Prune.
template <class Match, class Make>
Graph ReplaceMatches(const Graph& graph, const std::map<int, Match>& matches, const Make& make) {
  Rebuild rebuild(graph);
  for (int i = 0; i < graph.size(); ++i) {
    const auto match = matches.find(i);
    if (match == matches.end()) {
      rebuild.Keep(i);
    } else {
      rebuild.Emit(i, make(i, match->second, &rebuild));
    }
  }
  return rebuild.Finish();
}

}  // namespace floe
