// Holds the proof that a signature may be batched against what running it shows.
#pragma once

#include "absl/status/statusor.h"
#include "tests/corpus_case.h"

namespace floe::corpus {

// Opens dim 0 of the case's inputs, by turns of different sets of them (the others become
// constants), and where the runtime says that requests may be batched, runs rows alone, together
// and in another order. The number of signatures so checked; DATA_LOSS when a row's bits depend on
// its company.
absl::StatusOr<int> CheckRows(const CorpusCase& c, const CorpusVariant& variant,
                              const CompileOptions& compile = {});

}  // namespace floe::corpus
