#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/op_def.h"
#include "runtime/passes/passes.h"

namespace floe {

absl::Status UnsupportedNodes(const std::vector<std::string>& nodes) {
  return absl::UnimplementedError(
      absl::StrCat("the graph needs ", nodes.size(), nodes.size() == 1 ? " node" : " nodes",
                   " that floe does not support: ", absl::StrJoin(nodes, ", ")));
}

absl::Status CheckSupported(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "Unsupported")
      names.push_back(absl::StrCat("'", node.name, "' (", node.attrs.String("tensorflow_op"), ")"));
  }
  return names.empty() ? absl::OkStatus() : UnsupportedNodes(names);
}

}  // namespace floe
