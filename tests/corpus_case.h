// One case of the conformance corpus: reading it, running it in this process, comparing with
// TensorFlow's answers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tensor.h"

namespace floe::corpus {

struct CorpusTensor {
  std::string name;  // "node:0"
  Tensor value;
};

// A graph of the case: the main one, or another form of the same model.
struct CorpusVariant {
  std::string name;  // "case", or "case/variant"
  std::filesystem::path graph;
  std::vector<std::string> outputs;  // by position those of the case
};

struct CorpusCase {
  std::vector<CorpusVariant> variants;  // the main graph first
  std::vector<CorpusTensor> inputs, outputs;
  std::vector<std::string> init_ops;
  double rtol = 0, atol = 0, mtol = 0;  // mtol 0: no clamping
  bool values = true;                   // false: only dtypes and shapes are compared
};

// INVALID_ARGUMENT names what is missing. nlohmann::json's exceptions pass for a malformed
// case.json.
absl::StatusOr<CorpusCase> ReadCorpusCase(const std::filesystem::path& folder);

// OK when the graph gives the case's answers, twice in one context; otherwise the first error or
// difference.
absl::Status RunCorpusCase(const CorpusCase& c, const CorpusVariant& variant);

// OK when the graph, written in floe's own form and read back, gives the same bits as it does
// itself, or fails with the same error.
absl::Status RunConvertedCase(const CorpusCase& c, const CorpusVariant& variant);

// The first difference in dtype, shape or values. NaN equals NaN; `c` gives the tolerances.
absl::Status CompareTensors(const CorpusCase& c, const TensorView& got, const TensorView& want);

}  // namespace floe::corpus
