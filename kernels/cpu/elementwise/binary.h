// The kernel of element-wise ops of two inputs, and its registration for one function.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/elementwise.h"

namespace floe::kernels {

// y[i] = f(a[i * step_a], b[i * step_b]), steps 0 or 1. False: some element has no result (a
// division by zero).
using BinaryLoop = bool (*)(const void* a, int64_t step_a, const void* b, int64_t step_b, void* y,
                            int64_t n);

// `fast`: used instead of `loop` when its members are set. `failure`: what a false from the loop
// means. `channel_bias`: b is laid along dim 1 of a (BiasAdd of NCHW).
std::unique_ptr<Kernel> MakeBinaryKernel(BinaryLoop loop, const BinaryF32Set& fast,
                                         const char* failure, bool channel_bias = false);

// Op::Do(a, b) gives the result, or Op::Do(a, b, &failed). The result's type is what Do returns.
template <class Op, class T>
struct BinaryOf {
  using C = Compute<T>;
  static auto Apply(C a, C b, bool* failed) {
    if constexpr (requires { Op::Do(a, b, failed); }) {
      return Op::Do(a, b, failed);
    } else {
      (void)failed;
      return Op::Do(a, b);
    }
  }
  using Result = decltype(Apply(C{}, C{}, nullptr));
  using Stored = std::conditional_t<std::is_same_v<Result, C>, T, Result>;

  static bool Run(const void* a, int64_t step_a, const void* b, int64_t step_b, void* y,
                  int64_t n) {
    const T *pa = static_cast<const T*>(a), *pb = static_cast<const T*>(b);
    Stored* to = static_cast<Stored*>(y);
    bool failed = false;
    const auto loop = [&](auto a_step, auto b_step) {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<Stored>(
            Apply(static_cast<C>(pa[i * a_step]), static_cast<C>(pb[i * b_step]), &failed));
      }
    };
    if constexpr (std::is_same_v<Stored, bool>) {
      WithConstantSteps(loop, step_a, step_b);
    } else {
      loop(step_a, step_b);
    }
    return !failed;
  }

  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
    BinaryF32Set fast;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Stored, float>)
      fast = FindBinaryF32(args.node.op->name);
    return MakeBinaryKernel(&Run, fast, Op::kFailure);
  }
};

struct RegisterBinary {
  template <class Op, class... Ts>
  RegisterBinary(const char* name, Op, TypeList<Ts...>) {
    (KernelRegistrar(name, DeviceKind::kCpu, {kDTypeOf<Ts>}, &BinaryOf<Op, Ts>::Make), ...);
  }
};

#define FLOE_BINARY(NAME, TYPES, EXPRESSION)    \
  struct NAME##Op {                             \
    static constexpr const char* kFailure = ""; \
    template <class T>                          \
    static auto Do(T a, T b) {                  \
      return EXPRESSION;                        \
    }                                           \
  };                                            \
  const RegisterBinary k##NAME(#NAME, NAME##Op{}, TYPES{});

}  // namespace floe::kernels
