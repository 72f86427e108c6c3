// Axes of values as configurations name them, from either end; those past the rank are errors.
#pragma once

#include <cstdint>
#include <vector>

#include "model/import/keras/builder.h"

namespace floe::keras {

// An axis of `x`, from the front; 0 after an error.
int AxisOf(GraphBuilder& b, ValueRef x, int64_t axis);
// Several; none after an error.
std::vector<int64_t> AxesOf(GraphBuilder& b, ValueRef x, std::vector<int64_t> axes);
// x with two axes in each other's place.
ValueRef SwapAxes(GraphBuilder& b, ValueRef x, int64_t one, int64_t other);
// Each element `times` times in a row along an axis.
ValueRef RepeatElements(GraphBuilder& b, ValueRef x, int64_t axis, int64_t times);

}  // namespace floe::keras
