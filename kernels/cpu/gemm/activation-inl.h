// Activations of float vectors, one rounding for fused and unfused use.
// Included once per target: include "kernels/cpu/hwy_targets.h", foreach_target.h and highway.h
// first.
#if defined(FLOE_KERNELS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FLOE_KERNELS_CPU_ACTIVATION_INL_H_
#undef FLOE_KERNELS_CPU_ACTIVATION_INL_H_
#else
#define FLOE_KERNELS_CPU_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/cpu/elementwise/vector_math-inl.h"
#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return AtLeast(d, x, 0.0f);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu6(D d, V x) {
  return AtLeast(d, AtMost(d, x, 6.0f), 0.0f);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V LeakyRelu(D d, V x, float alpha) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, alpha)), x);
}

// x for x >= 0, e^x - 1 below.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Elu(D d, V x) {
  const auto below = hn::Lt(x, hn::Zero(d));
  return hn::IfThenElse(below, Expm1UpToZero(d, hn::IfThenElseZero(below, x)), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Selu(D d, V x) {
  const V scale = hn::Set(d, 1.0507009873554804934193349852946f);
  const V scale_alpha = hn::Set(d, 1.7580993408473768599402175208123f);
  return hn::Mul(Elu(d, x), hn::IfThenElse(hn::Lt(x, hn::Zero(d)), scale_alpha, scale));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Softsign(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Abs(x)));
}

// Whether an activation is done in the registers of the sums. Others would take these registers.
constexpr bool IsCheap(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu ||
         activation == Activation::kRelu6 || activation == Activation::kLeakyRelu;
}

// Calls to_all(f) with the function f of a vector that a cheap activation is, so that it is chosen
// once and not for each vector; never for any other.
template <class D, class ToAll>
HWY_INLINE void ActivateCheaply(D d, Activation activation, float alpha, const ToAll& to_all) {
  using V = hn::Vec<D>;
  if (activation == Activation::kRelu) {
    to_all([&](V x) HWY_ATTR { return Relu(d, x); });
  } else if (activation == Activation::kRelu6) {
    to_all([&](V x) HWY_ATTR { return Relu6(d, x); });
  } else if (activation == Activation::kLeakyRelu) {
    to_all([&](V x) HWY_ATTR { return LeakyRelu(d, x, alpha); });
  }
}

// n floats in each of some rows.
struct FloatRows {
  float* base;
  int64_t count, stride;
  size_t n;
};

// f(v) over the rows in place; tails are computed in a full vector. Rows without gaps are one.
template <class D, class F>
HWY_INLINE void MapInPlace(D d, const FloatRows& rows, const F& f) {
  const bool dense = rows.stride == static_cast<int64_t>(rows.n);
  const size_t lanes = hn::Lanes(d), n = dense ? rows.n * static_cast<size_t>(rows.count) : rows.n;
  for (int64_t row = 0; row < (dense ? 1 : rows.count); ++row) {
    float* const p = rows.base + row * rows.stride;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, p + i)), d, p + i);
    if (i < n) StorePartial(d, f(LoadPartial(d, p + i, n - i)), p + i, n - i);
  }
}

inline HWY_NOINLINE void ActivateInPlace(Activation activation, float alpha,
                                         const FloatRows& rows) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Relu(d, v); });
    case Activation::kRelu6:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Relu6(d, v); });
    case Activation::kSigmoid:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Sigmoid(d, v); });
    case Activation::kTanh:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Tanh(d, v); });
    case Activation::kElu:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Elu(d, v); });
    case Activation::kSelu:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Selu(d, v); });
    case Activation::kSoftplus:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Softplus(d, v); });
    case Activation::kSoftsign:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Softsign(d, v); });
    case Activation::kExp:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Exp(d, v); });
    case Activation::kSwish:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return hn::Mul(v, Sigmoid(d, v)); });
    case Activation::kLeakyRelu:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return LeakyRelu(d, v, alpha); });
    case Activation::kGelu:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Gelu(d, v); });
    case Activation::kGeluTanh:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return GeluTanh(d, v); });
    case Activation::kMish:
      return MapInPlace(d, rows, [&](V v) HWY_ATTR { return Mish(d, v); });
  }
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FLOE_KERNELS_CPU_ACTIVATION_INL_H_
