// Inputs that a request leaves out and whose defaults the graph computes. When it is bound their
// shapes are settled, as far as they are known, and when it runs their values.
#pragma once

#include "runtime/default_program.h"
#include "server/executor/executor.h"

namespace floe::server {

// For binding.missing: gives each such input its type, without data. Returns false, with the plan
// of a program in `binding.plan`, where only the run tells a shape. INVALID_ARGUMENT: an input does
// not fit.
absl::StatusOr<bool> BindDefaults(Request* request);

// Gives the inputs their values, once for each request, by runs within the limits. The request owns
// them.
absl::Status ComputeDefaults(const RunLimits& limits, ExecContext* context, Request* request);

}  // namespace floe::server
