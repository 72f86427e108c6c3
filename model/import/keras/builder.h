// The builder by the names of this folder, and what Keras' rules need of sizes and products beside
// graph_ops.h.
#pragma once

#include <string>

#include "model/import/graph_ops.h"

namespace floe::keras {

using build::Attributes;
using build::GraphBuilder;
using build::WantedDim;

// The size of a dim; an error that asks for `what` where it is not a number; 1 then.
int64_t SizeOf(GraphBuilder& b, ValueRef v, int axis, const std::string& what);

// Of any ranks >= 2, batched; of a matrix `kernel`, one product of all rows.
ValueRef MatrixProduct(GraphBuilder& b, ValueRef x, ValueRef kernel);

}  // namespace floe::keras
