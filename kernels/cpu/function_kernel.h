// Kernels that are one function of the context, for ops without state worth a class.
#pragma once

#include <memory>
#include <utility>

#include "kernels/kernel.h"

namespace floe::kernels {

template <class F>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(F f) : f_(std::move(f)) {}
  absl::Status Run(const KernelContext& ctx) const override { return f_(ctx); }

 private:
  F f_;
};

// f(ctx) returns absl::Status; it is shared by all workers.
template <class F>
std::unique_ptr<Kernel> FromFunction(F f) {
  return std::make_unique<FunctionKernel<F>>(std::move(f));
}

// A factory for a function that needs no attributes.
template <absl::Status (*kRun)(const KernelContext&)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFunction(const KernelArgs&) {
  return FromFunction([](const KernelContext& ctx) { return kRun(ctx); });
}

}  // namespace floe::kernels
