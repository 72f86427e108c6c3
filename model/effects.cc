#include "model/effects.h"

#include <algorithm>
#include <set>

#include "model/op_def.h"

namespace floe {
namespace {

// `seen`: graphs looked into already. Nodes may share them, so that without it a few would be
// looked into times without end.
bool FindsEffect(const Node& node, std::set<const Graph*>* seen) {
  if (node.op->effect) return true;
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const auto& subgraph) {
    return seen->insert(subgraph.get()).second &&
           std::any_of(subgraph->nodes().begin(), subgraph->nodes().end(),
                       [&](const Node& inner) { return FindsEffect(inner, seen); });
  });
}

}  // namespace

bool HasEffect(const Node& node) {
  if (node.subgraphs.empty()) return node.op->effect;
  std::set<const Graph*> seen;
  return FindsEffect(node, &seen);
}

}  // namespace floe
