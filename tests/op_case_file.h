// The project's own cases, tests/op_cases/*.txt: small graphs with TensorFlow's answers. README.md
// beside them describes the form.
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/corpus_case.h"

namespace floe::corpus {

// Cases in the order of the file. INVALID_ARGUMENT names file and line.
absl::StatusOr<std::vector<CorpusCase>> ReadOpCases(const std::filesystem::path& file);

}  // namespace floe::corpus
