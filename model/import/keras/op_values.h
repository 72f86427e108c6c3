// Values that several rules of operations make.
#pragma once

#include "model/import/keras/operation.h"

namespace floe::keras {

// x along its last axis in order, or the int32 indices that put it in order.
ValueRef SortLast(GraphBuilder& b, ValueRef x, bool ascending, bool indices);

// A floating x, of 32 bits at least, with -0 as the greatest number below 0: what Keras 3 looks for
// extremes in.
ValueRef WithNegativeZeros(GraphBuilder& b, ValueRef x);

// Argument number i, or by this name, or the option of this name, as a vector of int32: a list
// whose items may be computed, or a vector that is.
ValueRef VectorAt(LayerContext& c, int i, const char* name);
// Whether such an argument is computed.
bool IsComputed(LayerContext& c, int i, const char* name);

}  // namespace floe::keras
