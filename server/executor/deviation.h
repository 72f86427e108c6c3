// How far a model's results are from those of the same file compiled with exact weights.
#pragma once

#include <map>
#include <string>

#include "server/executor/warm_up.h"

namespace floe::server {

// Has a slot of its own, so that what serves keeps nothing of the exact model. Threading: one
// thread.
class DeviationMeter {
 public:
  DeviationMeter(ModelHandle exact, const WarmUpLimits& limits,
                 const PlanExecutor::Options& options)
      : exact_(std::move(exact)),
        limits_(limits),
        executor_(/*slots=*/1, /*intra_op_threads=*/1, options) {}

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
  PlanExecutor executor_;
  int compared_ = 0;
  std::map<std::string, double> largest_;
};

}  // namespace floe::server
