// What a node that parses tf.train.Examples asks for: ParseExample, ParseExampleV2 and
// ParseSingleExample say it in different places.
#pragma once

#include <vector>

#include "model/op_def.h"

namespace floe::ops {

struct ExampleSpec {
  std::vector<DType> sparse, dense, ragged, ragged_splits;
  std::vector<SymShape> dense_shapes;  // of one example; one per dense feature
  int first_default = 0;               // input with the first dense feature's default
  // Inputs with keys: [0] sparse, [1] dense, [2] ragged, each one vector (V2), or a scalar for each
  // key from there on. -1: the keys are the attributes sparse_keys and dense_keys.
  int keys[3] = {-1, -1, -1};
  bool key_vectors = false;

  int features() const { return static_cast<int>(sparse.size() + dense.size() + ragged.size()); }
  // Examples may have any number of values: dim 0 of the shape is unknown.
  bool VariableLength(int dense_feature) const;
};

// INVALID_ARGUMENT where attributes contradict each other or the number of inputs.
absl::StatusOr<ExampleSpec> ExampleSpecOf(const Node& node, int inputs);

}  // namespace floe::ops
