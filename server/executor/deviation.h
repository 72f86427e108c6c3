// How far a model's results are from those of the same file compiled with exact weights.
#pragma once

#include <map>
#include <string>

#include "server/executor/warm_up.h"

namespace floe::server {

// Threading: one thread. The executor must outlive it; its first slot is used.
class DeviationMeter {
 public:
  DeviationMeter(ModelHandle exact, const WarmUpLimits& limits, PlanExecutor* executor)
      : exact_(std::move(exact)), limits_(limits), executor_(executor) {}

  // Runs the request on its own model and on the exact one, if it is one of the first few. It stays
  // as it is, but that its inputs are decoded. Where a run fails nothing is compared.
  void Compare(const Request& request);
  // The same for every signature of the model whose shapes can be guessed: some rows of floats
  // uniform in [0, 1) with a fixed seed, and zeros for other types.
  void CompareMadeUp(const ModelHandle& model);

  // By signature: the largest difference of an output's number, in parts of the largest magnitude
  // of that output. Signatures without outputs of floats are not among them.
  const std::map<std::string, double>& largest() const { return largest_; }

 private:
  const ModelHandle exact_;
  const WarmUpLimits limits_;
  PlanExecutor* const executor_;
  int compared_ = 0;
  std::map<std::string, double> largest_;
};

}  // namespace floe::server
