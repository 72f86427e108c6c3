// RecurrentPair: two FusedRecurrent layers that read one sequence, such as the two directions of a
// Bidirectional, in one step, which may run them at the same time. Made by a pass; no file has it.
// Attribute K/X is attribute X of layer K, 0 or 1. Inputs: those of layer 0, then those of layer 1;
// outputs alike.
#pragma once

#include <array>

#include "absl/types/span.h"
#include "model/graph.h"

namespace floe::ops {

struct PairedLayer {
  Node node;  // its op and attributes; no inputs
  int first_input = 0, inputs = 0, first_output = 0;
  static constexpr int kOutputs = 3;

  template <class T>
  absl::Span<const T> InputsOf(absl::Span<const T> of_pair) const {
    return of_pair.subspan(first_input, inputs);
  }
  template <class T>
  absl::Span<const T> OutputsOf(absl::Span<const T> of_pair) const {
    return of_pair.subspan(first_output, kOutputs);
  }
};

// INVALID_ARGUMENT for attributes that are none of two layers.
absl::StatusOr<std::array<PairedLayer, 2>> PairedLayersOf(const Node& pair);

// A node with the inputs and attributes of both.
Node PairRecurrent(const Node& first, const Node& second);

}  // namespace floe::ops
