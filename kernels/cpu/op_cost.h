// What an element costs by op: figures of one core of a common server, taken once.
#pragma once

#include <string>
#include <vector>

#include "model/epilogue.h"

namespace floe::kernels {

// What an op's work is counted in.
enum class CostBasis : uint8_t {
  kOutput,   // elements of output 0
  kInput,    // of input 0 where these are more
  kFlops,    // EstimateFlops
  kProduct,  // multiply-adds of packed products
  kCubic,    // elements of input 0 times its last dim
};

struct OpCost {
  CostBasis basis = CostBasis::kOutput;
  // Nanoseconds for each; of products, the part of the multiply-adds of a large one that is
  // reached.
  double rate = 1;
  bool vector = false;  // whether the rate depends on how wide vectors are
};

// By the op's name in a graph after import (OpDef::name).
OpCost CostOfOp(const std::string& op);
std::vector<std::string> OpsWithCosts();  // for tests

// Nanoseconds an element for an activation at the end of a product.
double CostOfActivation(Activation activation);

}  // namespace floe::kernels
