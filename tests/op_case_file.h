// The project's own cases, tests/op_cases/*.txt: small graphs with TensorFlow's answers.
//
//   case NAME [rtol=R] [atol=A] [batchable]    begins a case; batchable: rows must be independent
//   node { ... }, function { ... }  its GraphDef and library in text form; an empty line ends the
//                                   case
//   init NODE                       run once before the first run
//   feed NAME DTYPE [D,D] VALUE...  an input; strings in quotes with C's escapes, complex numbers
//                                   as two values
//   want NAME DTYPE [D,D] VALUE...  an output
//   bounds NAME DTYPE [D,D] LOW HIGH MEAN DEVIATION    a random output
//   fetch NAME                      an output of a case that fails
//   fails WORDS                     the run ends in an error with these words
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/corpus_case.h"

namespace floe::corpus {

// Cases in the order of the file. INVALID_ARGUMENT names file and line.
absl::StatusOr<std::vector<CorpusCase>> ReadOpCases(const std::filesystem::path& file);

}  // namespace floe::corpus
