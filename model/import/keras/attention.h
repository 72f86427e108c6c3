// What attention layers share.
#pragma once

#include "model/import/keras/builder.h"

namespace floe::keras {

// [queries, keys] of bool: true where the key is not behind the query. `scores`: [..., queries,
// keys].
ValueRef CausalMask(GraphBuilder& b, ValueRef scores);

}  // namespace floe::keras
