#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {

void RemoveIdentities(Graph* graph) {
  Rebuild rebuild(*graph);
  for (int i = 0; i < graph->size(); ++i) {
    const Node& node = graph->node(i);
    const std::string& op = node.op->name;
    if (op == "Identity" || op == "PlaceholderWithDefault" || op == "Print") {
      rebuild.Replace(i, 0, rebuild.Map(node.inputs[0]));
    } else if (op == "IdentityN") {
      for (size_t k = 0; k < node.inputs.size(); ++k)
        rebuild.Replace(i, static_cast<int>(k), rebuild.Map(node.inputs[k]));
    } else {
      rebuild.Keep(i);
    }
  }
  *graph = rebuild.Finish();
}

}  // namespace floe
