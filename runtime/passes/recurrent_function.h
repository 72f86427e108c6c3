// Recognises the functions that recurrent cells apply.
#pragma once

#include <optional>

#include "model/graph.h"
#include "model/ops/recurrent.h"

namespace floe {

// A function and what it is of.
struct AppliedFunction {
  ops::RecurrentGate gate;
  ValueRef of;
};

// Nothing for values that are none of the functions, the linear one included.
std::optional<AppliedFunction> RecurrentFunctionOf(const Graph& graph, ValueRef ref);

// The only element of a float32 constant of at most two dims.
std::optional<float> ConstantFloat(const Graph& graph, ValueRef ref);

}  // namespace floe
