// Inputs for tools that have none: shapes that fit the model, and values for them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cli/local_model.h"

namespace floe::cli {

// Whether values can be made up for the input with this shape: INVALID_ARGUMENT where they cannot,
// or would take more than 1 GiB.
absl::Status CheckMadeUp(const SignatureTensor& input, const Shape& shape);
// Floats uniform in [0, 1), everything else zero. The shape was checked.
Tensor MadeUpTensor(DType dtype, const Shape& shape, std::mt19937& random);
// The generator that all made-up inputs begin with, so that they are the same each time.
std::mt19937 MadeUpRandom();

struct MadeUpOptions {
  std::vector<int64_t> rows = {1};  // of dim 0 where the model leaves it open, tried in turn
  int64_t unknown_dim = 0;          // of other dims that are open; 0: sizes that fit are looked for
};

struct MadeUpCall {
  std::vector<Tensor> inputs;  // one for each required input
  BoundCall call;
  int64_t rows = 1;  // those that fitted
};

// Shapes that the model can be planned for. What the signature leaves open, ranks included, is
// taken from the ops that read an input, or else looked for among usual ones. Floats are uniform in
// [0, 1) with a fixed seed, everything else is zero. The error of the first attempt where none
// fits; INVALID_ARGUMENT for inputs whose values cannot be made up, or of more than 1 GiB.
absl::StatusOr<MadeUpCall> MakeUpInputs(const Signature& signature, const MadeUpOptions& options);

}  // namespace floe::cli
