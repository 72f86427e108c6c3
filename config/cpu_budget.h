// How models share the CPUs: by cpu_shares, with threads of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cpus.h"
#include "config/config.h"

namespace floe {

// The cpu_shares of all configured models, to compare one model's with.
struct CpuShares {
  int64_t heaviest = 1;  // the most of one model; niceness follows from cpu_shares / heaviest
  int64_t sum = 0;       // workers: auto follows from cpu_shares / sum; 0: the model is alone
};

CpuShares CpuSharesOf(const std::vector<ModelConfig>& models);

// How many workers the model gets: as configured, or as many as its CPUs run at once, less one CPU
// for connections and loading. Without a cpu_set its CPUs are its part of all by cpu_shares,
// rounded up. At least 1 and at most 16.
int64_t WorkersOf(const ModelConfig& model, const CpuShares& shares, const UsableCpus& usable);

// A warning for each model whose threads (workers x intra_op_threads) can need more CPUs than it
// may use, and for each whose cpu_set names CPUs that are not usable. Without any of these, one
// warning when all configured threads together can need more CPUs than there are.
std::vector<std::string> CpuBudgetWarnings(const std::vector<ModelConfig>& models,
                                           const UsableCpus& usable);

}  // namespace floe
