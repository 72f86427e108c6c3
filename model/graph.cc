#include "model/graph.h"

#include "absl/strings/str_cat.h"
#include "model/op_def.h"

namespace floe {

std::string TensorNameOf(const std::string& node, int output) {
  return output == 0 ? node : absl::StrCat(node, ":", output);
}

std::string DebugString(const Graph& graph) {
  std::string out;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    absl::StrAppend(&out, i, " ", node.op->name, " ", node.name, "(");
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      absl::StrAppend(&out, k == 0 ? "" : ", ", node.inputs[k].node, ":", node.inputs[k].output);
    }
    absl::StrAppend(&out, ")\n");
  }
  return out;
}

}  // namespace floe
