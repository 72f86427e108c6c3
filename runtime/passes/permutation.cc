#include "runtime/passes/permutation.h"

#include "model/op_def.h"
#include "runtime/passes/graph_util.h"

namespace floe {

std::optional<Permutation> PermutationOf(const Graph& graph, const Node& node) {
  if (node.op->name != "Transpose" || node.inputs.size() != 2 || node.attrs.Bool("conjugate"))
    return std::nullopt;
  std::optional<Permutation> perm = IntsOf(graph, node.inputs[1]);
  if (!perm.has_value()) return std::nullopt;
  std::vector<bool> seen(perm->size(), false);
  for (int64_t& axis : *perm) {
    if (axis < 0) axis += static_cast<int64_t>(perm->size());
    if (axis < 0 || axis >= static_cast<int64_t>(perm->size()) || seen[axis]) return std::nullopt;
    seen[axis] = true;
  }
  return perm;
}

bool IsIdentity(const Permutation& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

Permutation Compose(const Permutation& first, const Permutation& then) {
  Permutation both;
  for (const int64_t axis : then) both.push_back(first[axis]);
  return both;
}

Permutation Inverse(const Permutation& perm) {
  Permutation inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return inverse;
}

}  // namespace floe
