// What a model's weight is compared with when models share the CPUs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/config.h"

namespace floe::server {

// Of all models that are configured.
struct ModelWeights {
  int64_t heaviest = 1;  // niceness is by weight / heaviest
  int64_t sum = 0;       // automatic workers are by weight / sum; 0: the model is alone
};

inline ModelWeights WeightsOf(const std::vector<ModelConfig>& models) {
  ModelWeights weights;
  for (const ModelConfig& model : models) {
    weights.heaviest = std::max(weights.heaviest, model.weight);
    weights.sum += model.weight;
  }
  return weights;
}

}  // namespace floe::server
