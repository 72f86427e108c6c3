// What a kernel's epilogue adds, in a run.
#pragma once

#include "kernels/kernel.h"
#include "model/epilogue.h"

namespace floe::kernels {

// Null: there is none.
template <typename T>
const T* BiasOf(const KernelContext& ctx, const Epilogue& epilogue) {
  return epilogue.has_bias() ? ctx.in(epilogue.bias).as<T>() : nullptr;
}
template <typename T>
const T* ResidualOf(const KernelContext& ctx, const Epilogue& epilogue) {
  return epilogue.has_residual() ? ctx.in(epilogue.residual).as<T>() : nullptr;
}

}  // namespace floe::kernels
