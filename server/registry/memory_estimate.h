// What a compiled model will need to run, before anything of it is allocated.
#pragma once

#include <cstdint>

#include "runtime/model.h"

namespace floe::server {

// Bytes of the largest arena among its signatures for runs of `rows` rows, with unknown
// non-batch dimensions taken as 1. Memory of values whose size only a run settles is not known
// here.
int64_t ArenaBytes(const Model& model, int64_t rows);

}  // namespace floe::server
