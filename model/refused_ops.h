// TensorFlow's ops that floe does not run on purpose, and why: for docs/ops.md and for the error of
// a graph that needs one.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace floe {

struct RefusedOps {
  const char* group;  // what the ops have in common, as a heading
  const char* why;    // and what to do instead, as the end of "X is not supported: ..."
  const char* names;  // with blanks between; a `*` at either end of one stands for any letters
};

// In the order of their importance to a reader; the first that matches an op counts.
absl::Span<const RefusedOps> AllRefusedOps();
std::vector<std::string> NamesOf(const RefusedOps& group);

// Null for an op that is supported, or about which nothing is known.
const RefusedOps* FindRefusedOp(const std::string& tensorflow_op);

}  // namespace floe
