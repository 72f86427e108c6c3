// Recognises the cell of a recurrent layer in the graph of one step.
#pragma once

#include <optional>
#include <vector>

#include "model/graph.h"
#include "model/ops/recurrent.h"

namespace floe {

// One step, its constants folded and identities removed.
struct RecurrentStepGraph {
  const Graph& graph;
  ValueRef x;                    // [batch, x_width]: this step of the sequence
  int64_t x_width = -1;          // -1: not known
  std::vector<ValueRef> states;  // before the step: one or two
  std::vector<ValueRef> next;    // after it
};

struct MatchedCell {
  // Of this: cell, gates, units, projected.
  ops::RecurrentSpec spec;
  int h = 0;           // which state is h; the other one is c
  Tensor w, r, b, rb;  // as FusedRecurrent takes them; w and rb may be none
};

// Nothing unless every state follows from x and the states before by exactly the arithmetic of one
// of the cells, with constant weights. RESOURCE_EXHAUSTED where there is no memory for the weights.
absl::StatusOr<std::optional<MatchedCell>> MatchRecurrentCell(const RecurrentStepGraph& step);

// [begin, begin + count) of dim `axis`, of `size` elements, when a StridedSlice with constant
// bounds takes this and all of the other dims.
struct AxisSlice {
  int64_t begin = 0, count = 0;
  bool shrink = false;  // the dim is gone
};
std::optional<AxisSlice> SliceAlong(const Graph& graph, const Node& node, int rank, int axis,
                                    int64_t size);

}  // namespace floe
