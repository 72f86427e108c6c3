// Choosing between several ways to compute one node, once, when its kernel is made.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/kernel.h"

namespace floe {

// One way to compute a node. Costs come from a model with constants for each instruction set, never
// from a measurement, so that every start and every replica chooses the same.
struct Candidate {
  std::string name;               // as --route has it: "gemm"
  std::optional<double> cost_us;  // for one row; unset where the shapes are not known
  bool automatic = true;          // false: only for those who ask for it
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>()> make;
};

// The kernel of the candidate that KernelOptions::routes has for the node; else of `wanted` unless
// that is empty; else of the automatic one of the least cost, the first where two are equal or one
// is unknown. The kernel knows the offers. INVALID_ARGUMENT lists them for a name that is none.
absl::StatusOr<std::unique_ptr<Kernel>> MakeChosen(const KernelArgs& args,
                                                   const std::vector<Candidate>& candidates,
                                                   absl::string_view wanted = "");

}  // namespace floe
