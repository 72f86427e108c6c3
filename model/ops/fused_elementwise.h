// FusedElementwise: several element-wise ops in one step. Made by a pass; no file holds it.
//
// Attributes, one entry a step: "ops" (names), "operands", "alphas" (LeakyRelu), "types" (Cast's
// DstT, or invalid). An operand of a step is an input, or inputs + i for the result of step i.
// The result of the last step is the output.
#pragma once

#include <vector>

#include "model/op_def.h"

namespace floe::ops {

inline constexpr int kMaxFusedInputs = 8;
inline constexpr int kMaxFusedSteps = 16;
inline constexpr int kMaxStepInputs = 3;

struct FusedStep {
  Node node;  // of the op that is done, with its attributes; no inputs
  std::vector<int> operands;
};

// INVALID_ARGUMENT for attributes that do not fit together, or `inputs`.
absl::StatusOr<std::vector<FusedStep>> FusedStepsOf(const Node& node, int inputs);
void SetFusedSteps(const std::vector<FusedStep>& steps, Attrs* attrs);

// Types of the steps' results.
absl::StatusOr<Types> InferFusedSteps(const std::vector<FusedStep>& steps,
                                      absl::Span<const ValueInfo> inputs);

// What may be a step: an element-wise op of one to three inputs, all broadcast alike.
bool MayBeFused(const OpDef& op);

}  // namespace floe::ops
