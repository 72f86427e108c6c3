#include "config/cpu_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/threads.h"

namespace floe {
namespace {

// Where the number of workers is not configured: each has memory of its own and is warmed up.
constexpr int64_t kMostWorkers = 16;

int64_t CpusOf(const ModelConfig& model, const UsableCpus& usable) {
  const int64_t count = usable.count();
  if (model.cpu_set.empty()) return count;
  return std::min(count, static_cast<int64_t>(model.cpu_set.size()));
}

}  // namespace

CpuShares CpuSharesOf(const std::vector<ModelConfig>& models) {
  CpuShares cpu_shares;
  for (const ModelConfig& model : models) {
    cpu_shares.heaviest = std::max(cpu_shares.heaviest, model.weight);
    cpu_shares.sum += model.weight;
  }
  return cpu_shares;
}

int64_t WorkersOf(const ModelConfig& model, const CpuShares& cpu_shares, const UsableCpus& usable) {
  if (model.workers > 0) return model.workers;
  int64_t cpus = CpusOf(model, usable) - 1;
  if (model.cpu_set.empty() && cpu_shares.sum > 0)
    cpus = (cpus * model.weight + cpu_shares.sum - 1) / cpu_shares.sum;
  return std::clamp<int64_t>(cpus / model.intra_op_threads, 1, kMostWorkers);
}

std::vector<std::string> CpuBudgetWarnings(const std::vector<ModelConfig>& models,
                                           const UsableCpus& usable) {
  std::vector<std::string> warnings;
  const CpuShares cpu_shares = CpuSharesOf(models);
  int64_t all = 0;
  for (const ModelConfig& model : models) {
    const int64_t workers = WorkersOf(model, cpu_shares, usable);
    const int64_t threads = workers * model.intra_op_threads;
    if (model.workers > 0) all += threads;
    const int64_t cpus = CpusOf(model, usable);
    if (const absl::Status set = CheckCpuSet(model.cpu_set, usable.cpus); !set.ok())
      warnings.push_back(absl::StrCat("model '", model.name,
                                      "' will not be served here: ", std::string(set.message())));
    if (threads > cpus)
      warnings.push_back(absl::StrCat(
          "model '", model.name, "': ", workers, " workers with ", model.intra_op_threads,
          " intra-op threads each are ", threads, " threads for ", cpus,
          " CPUs; runs will wait for each other: lower workers or intra_op_threads"));
  }
  if (warnings.empty() && all > usable.count())
    warnings.push_back(
        absl::StrCat("the models' workers and intra-op threads are ", all, " for ", usable.count(),
                     " CPUs: when all models are busy they share the CPUs by their cpu_shares"));
  return warnings;
}

}  // namespace floe
