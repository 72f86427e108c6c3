// The ops that this build runs, for `ops` and docs/ops.md.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace floe::cli {

struct SupportedOp {
  std::string names;   // TensorFlow's, "Add, AddV2"
  std::string dtypes;  // of the first input (of the output where there is none): "floats, int32"
  std::string notes;   // what it does to request rows, what else sets it apart, what is missing
};

// By name. An op that files cannot name is left out.
std::vector<SupportedOp> SupportedOps();

// docs/ops.md as it should be.
void PrintOpsMarkdown(std::ostream& out);

}  // namespace floe::cli
