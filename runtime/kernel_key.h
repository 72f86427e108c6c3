// KernelKey: what a kernel is made from.
#pragma once

#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe {

// Nodes with equal keys may share a kernel: same op, device, attributes, options, types of
// inputs and constant inputs. A stateful node shares it only with itself, in another signature: two
// random ops of equal seeds each draw the same numbers.
struct KernelKey {
  absl::uint128 hash = 0;
  // Whether equal nodes of other models may share the kernel too. Not where something is known by
  // its address or name: a lookup table, a node with state.
  bool of_content = true;
};

KernelKey KeyOf(const Node& node, absl::Span<const ValueInfo> inputs, const KernelOptions& options);

}  // namespace floe
