// The part that fuzzers of model files share: what was imported is compiled, bound and run.
#pragma once

#include <string>

#include "model/import/import.h"
#include "tests/fuzz/random.h"

namespace floe::fuzz {

// Small, so that units are quick and whatever passes them shows.
inline constexpr ResourceLimits kLimits{.max_value_bytes = 1 << 16,
                                        .max_bytes = 1 << 20,
                                        .max_loop_iterations = 50,
                                        .max_visits = 3000};

// Sizes and values of inputs follow from the bytes of the unit.
Random ChoicesOf(const std::string& bytes);

// Two runs with different numbers of rows. Errors are as good as answers.
absl::Status CompileAndRun(ImportedModel imported, Random random);

}  // namespace floe::fuzz
