// floectl's commands run inside a test.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"

namespace floe::cli {

struct Outcome {
  int code = -1;  // exit status
  std::string out, err;
};

// `floectl ARGS...`
inline Outcome Floectl(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  Outcome outcome;
  outcome.code = Main(args, out, err);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

}  // namespace floe::cli
