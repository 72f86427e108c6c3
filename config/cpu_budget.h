// How models share the CPUs: by weight, and as threads of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cpus.h"
#include "config/config.h"

namespace floe {

// What a model's weight is compared with: of all models that are configured.
struct CpuShares {
  int64_t heaviest = 1;  // niceness is by weight / heaviest
  int64_t sum = 0;       // automatic workers are by weight / sum; 0: the model is alone
};

CpuShares CpuSharesOf(const std::vector<ModelConfig>& models);

// How many workers the model gets: as configured, or as many as its CPUs run at once, less one for
// connections and loading; of CPUs that are not its own (cpu_set) its share by weight, rounded up;
// at least 1, and at most 16.
int64_t WorkersOf(const ModelConfig& model, const CpuShares& cpu_shares, const UsableCpus& usable);

// A line when the threads (workers x intra_op_threads) that are configured can need more CPUs than
// there are, or one for each model whose own can need more than it may use; and one for each model
// whose cpu_set names CPUs that are not usable.
std::vector<std::string> CpuBudgetWarnings(const std::vector<ModelConfig>& models,
                                           const UsableCpus& usable);

}  // namespace floe
