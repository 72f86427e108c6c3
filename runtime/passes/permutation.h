// Permutations of dims, as Transpose has them: dim k of the result is dim perm[k] of the input.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/graph.h"

namespace floe {

using Permutation = std::vector<int64_t>;

// The constant permutation of a Transpose, made non-negative; nothing when it is not one.
std::optional<Permutation> PermutationOf(const Graph& graph, const Node& node);

bool IsIdentity(const Permutation& perm);

// First `first`, then `then`: Transpose(Transpose(x, first), then) = Transpose(x, Compose(...)).
Permutation Compose(const Permutation& first, const Permutation& then);

Permutation Inverse(const Permutation& perm);

}  // namespace floe
