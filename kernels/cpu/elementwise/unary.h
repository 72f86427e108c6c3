// The kernel of element-wise ops of one input, and its registration for one function.
#pragma once

#include <memory>

#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/unary_f32.h"
#include "kernels/elementwise.h"

namespace floe::kernels {

// y[i] = f(x[i], alpha)
using UnaryLoop = void (*)(const void* x, void* y, int64_t n, float alpha);

// `fast`, where not null, is used instead of `loop`.
std::unique_ptr<Kernel> MakeUnaryKernel(UnaryLoop loop, UnaryF32 fast, float alpha);

// Op::Do(x) or, for ops with a parameter, Op::Do(x, alpha). The result's type is what Do returns.
template <class Op, class T>
struct Unary {
  static auto Apply(Compute<T> x, float alpha) {
    if constexpr (requires { Op::Do(x, alpha); }) {
      return Op::Do(x, alpha);
    } else {
      (void)alpha;
      return Op::Do(x);
    }
  }
  using Result = decltype(Apply(Compute<T>{}, 0.0f));
  using Stored = std::conditional_t<std::is_same_v<Result, Compute<T>>, T, Result>;

  static void Run(const void* x, void* y, int64_t n, float alpha) {
    const T* from = static_cast<const T*>(x);
    Stored* to = static_cast<Stored*>(y);
    for (int64_t i = 0; i < n; ++i)
      to[i] = static_cast<Stored>(Apply(static_cast<Compute<T>>(from[i]), alpha));
  }

  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
    UnaryF32 fast = nullptr;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Stored, float>)
      fast = FindUnaryF32(args.node.op->name);
    return MakeUnaryKernel(&Run, fast, args.node.attrs.Float("alpha", 0.2f));
  }
};

struct RegisterUnary {
  template <class Op, class... Ts>
  RegisterUnary(const char* name, Op, TypeList<Ts...>) {
    (KernelRegistrar(name, DeviceKind::kCpu, {kDTypeOf<Ts>}, &Unary<Op, Ts>::Make), ...);
  }
};

#define FLOE_UNARY(NAME, TYPES, EXPRESSION) \
  struct NAME##Op {                         \
    template <class T>                      \
    static auto Do(T x) {                   \
      return EXPRESSION;                    \
    }                                       \
  };                                        \
  const RegisterUnary k##NAME(#NAME, NAME##Op{}, TYPES{});

}  // namespace floe::kernels
