// What a node that parses tf.train.Examples asks for: ParseExample, ParseExampleV2,
// ParseSingleExample and ParseSequenceExampleV2 say it in different places.
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
// INVALID_ARGUMENT for types, shapes and numbers of them that no parser takes.
absl::Status CheckExampleSpec(const ExampleSpec& spec);

// Types of the outputs for examples of shape `serialized`, a scalar or a vector: sparse indices,
// values and shapes; dense tensors; ragged values and their row splits.
Types FeatureTypes(const ExampleSpec& spec, const SymShape& serialized);

// Of tf.train.SequenceExamples: features of the whole, and lists of features of its steps.
// `lists.dense_shapes` are of one step.
struct SequenceSpec {
  ExampleSpec context, lists;
  static constexpr int kListKeys = 5;      // inputs: sparse, dense, ragged
  static constexpr int kMayBeMissing = 8;  // input: for each dense list whether it may
  static constexpr int kFirstDefault = 9;
  int context_outputs() const {
    return static_cast<int>(3 * context.sparse.size() + context.dense.size() +
                            2 * context.ragged.size());
  }
};
absl::StatusOr<SequenceSpec> SequenceSpecOf(const Node& node, int inputs);

}  // namespace floe::ops
