// Inputs for who has none, as warm-up and tools: shapes that fit a model, and values for them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"

namespace floe {

// A declared shape, of known rank: dim 0 is `rows` where it is open, and other open dims are
// `size`.
Shape FilledShape(const SymShape& declared, int64_t rows, int64_t size);

// Shapes of the variant's inputs at so many rows: unknown non-batch dimensions become 1 and clear
// `*known`. Unset: not even the rank is known.
std::optional<std::vector<Shape>> GuessShapes(const CompiledSignature& variant, int64_t rows,
                                              bool* known);

// Fills the first `inputs` of a context that is prepared with zeros and empty strings. What it
// returns keeps the strings and outlives the run.
std::vector<Tensor> ZeroInputs(size_t inputs, ExecContext* context);

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

struct MadeUpInputs {
  std::vector<Tensor> inputs;  // one for each required input
  int64_t rows = 1;            // those that fitted
};

// Shapes that `fits` accepts: it tries to plan the model for inputs of these shapes. What the
// signature leaves open, ranks included, is taken from the ops that read an input, or else looked
// for among usual ones. Floats are uniform in [0, 1) with a fixed seed, everything else is zero.
// The error of the first attempt where none fits; INVALID_ARGUMENT for inputs whose values cannot
// be made up, or of more than 1 GiB.
using InputsFit = absl::FunctionRef<absl::Status(absl::Span<const Tensor> inputs)>;
absl::StatusOr<MadeUpInputs> MakeUpInputs(const Signature& signature, const MadeUpOptions& options,
                                          InputsFit fits);

}  // namespace floe
