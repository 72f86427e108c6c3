#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/op_def.h"
#include "model/refused_ops.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/unsupported.h"

namespace floe {
namespace {

bool IsVariable(const UnsupportedNode& node) {
  static const std::set<std::string> kOps = {
      "AutoReloadVariable", "ReadVariableOp", "ResourceGather", "ResourceGatherNd",
      "TemporaryVariable",  "VarHandleOp",    "Variable",       "VariableV2"};
  return kOps.count(node.what) != 0;
}

std::string Shown(const UnsupportedNode& node) {
  return absl::StrCat(Quoted(node.name), " (", Escaped(node.what), ")");
}

void AddUnsupported(const Node& node, std::vector<UnsupportedNode>* nodes) {
  if (node.op->name == "Unsupported")
    nodes->push_back({node.name, node.attrs.String("tensorflow_op")});
}

// Of the bodies of a node, and of those below, as far as their results need it.
void AddInner(const Node& node, std::set<const Graph*>* seen, std::vector<UnsupportedNode>* nodes) {
  for (const auto& body : node.subgraphs) {
    if (!seen->insert(body.get()).second) continue;
    std::vector<bool> needed(body->size(), false);
    for (const ValueRef& out : body->outputs) needed[out.node] = true;
    for (int i = body->size() - 1; i >= 0; --i) {
      if (!needed[i]) continue;
      AddUnsupported(body->node(i), nodes);
      for (const ValueRef& in : body->node(i).inputs) needed[in.node] = true;
    }
    for (const Node& inner : body->nodes()) AddInner(inner, seen, nodes);
  }
}

// Why ops of the graph are refused, once for those of one reason.
std::string Reasons(const std::vector<std::string>& ops) {
  constexpr size_t kMost = 4;
  std::vector<const RefusedOps*> reported;
  std::string reasons;
  for (const std::string& op : ops) {
    const RefusedOps* const refused = FindRefusedOp(op);
    if (refused == nullptr ||
        std::find(reported.begin(), reported.end(), refused) != reported.end())
      continue;
    if (reported.size() == kMost) break;
    reported.push_back(refused);
    absl::StrAppend(&reasons, "; ", Escaped(op), ": ", refused->why);
  }
  return reasons;
}

}  // namespace

absl::Status UnsupportedNodes(const std::vector<UnsupportedNode>& nodes) {
  const auto variable = std::find_if(nodes.begin(), nodes.end(), IsVariable);
  if (variable != nodes.end()) {
    return absl::UnimplementedError(
        absl::StrCat("the graph is not frozen: it needs variables, such as ", Shown(*variable),
                     ", whose values are not in the file; freeze it with them ('floectl freeze'), "
                     "or serve the SavedModel that has them, or choose outputs that need none"));
  }
  constexpr size_t kMostOps = 12, kMostNodes = 3;
  std::map<std::string, std::vector<const UnsupportedNode*>> by_op;
  std::vector<std::string> ops;  // in the order of their first nodes
  for (const UnsupportedNode& node : nodes) {
    std::vector<const UnsupportedNode*>& same = by_op[node.what];
    if (same.empty()) ops.push_back(node.what);
    same.push_back(&node);
  }
  std::string list;
  for (size_t i = 0; i < std::min(ops.size(), kMostOps); ++i) {
    const std::vector<const UnsupportedNode*>& same = by_op[ops[i]];
    for (size_t k = 0; k < std::min(same.size(), kMostNodes); ++k)
      absl::StrAppend(&list, list.empty() ? "" : ", ", Shown(*same[k]));
    if (same.size() > kMostNodes)
      absl::StrAppend(&list, " and ", same.size() - kMostNodes, " more of these");
  }
  if (ops.size() > kMostOps) absl::StrAppend(&list, "; and ", ops.size() - kMostOps, " other ops");
  return absl::UnimplementedError(
      absl::StrCat("the graph needs ", nodes.size(), nodes.size() == 1 ? " node" : " nodes",
                   " that floe does not support: ", list, Reasons(ops)));
}

void AddUnsupportedInside(const Node& node, std::vector<UnsupportedNode>* nodes) {
  std::set<const Graph*> seen;
  AddInner(node, &seen, nodes);
}

absl::Status CheckSupported(const Graph& graph) {
  std::vector<UnsupportedNode> nodes;
  for (const Node& node : graph.nodes()) {
    const std::string* const why = node.attrs.Find<std::string>("why_unsupported");
    if (why != nullptr && node.op->name == "Unsupported") return absl::InvalidArgumentError(*why);
    AddUnsupported(node, &nodes);
  }
  if (nodes.empty()) return absl::OkStatus();
  // What is inside loops and branches is known when these are compiled, which is not to come.
  std::set<const Graph*> seen;
  for (const Node& node : graph.nodes()) AddInner(node, &seen, &nodes);
  return UnsupportedNodes(nodes);
}

}  // namespace floe
