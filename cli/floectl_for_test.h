// floectl's commands run inside a test, and files for them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
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

// scores = input * w + b; positive = relu(scores). One step, with the passes.
inline constexpr char kGraph[] = R"(
node { name: "input" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
node { name: "w" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } }
    float_val: 1 float_val: 2 float_val: 3 float_val: 4 float_val: 5 float_val: 6 } } } }
node { name: "b" op: "Const"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } }
    float_val: -10 float_val: 0 float_val: 0.5 } } } }
node { name: "product" op: "MatMul" input: "input" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "scores" op: "BiasAdd" input: "product" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "positive" op: "Relu" input: "scores" attr { key: "T" value { type: DT_FLOAT } } }
)";

// In the folder for temporary files. Returns its path.
inline std::string WriteText(const std::string& name, const std::string& text) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::trunc) << text;
  return path;
}

}  // namespace floe::cli
