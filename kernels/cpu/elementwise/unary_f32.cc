#include "kernels/cpu/elementwise/unary_f32.h"

#include "kernels/cpu/elementwise/angle_f32.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/unary_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/elementwise/vector_math-inl.h"
#include "kernels/cpu/gemm/activation-inl.h"
#include "kernels/cpu/partial-inl.h"

// The functions, in the order of every table below.
#ifndef FLOE_UNARY_F32
#define FLOE_UNARY_F32(X) \
  X(Relu)                 \
  X(Relu6)                \
  X(Elu)                  \
  X(Selu)                 \
  X(LeakyRelu)            \
  X(Sigmoid)              \
  X(Tanh)                 \
  X(Exp)                  \
  X(Expm1)                \
  X(Log)                  \
  X(Log1p)                \
  X(Sqrt)                 \
  X(Rsqrt)                \
  X(Square)               \
  X(Neg)                  \
  X(Abs)                  \
  X(Softplus)             \
  X(Softsign)             \
  X(Erf)                  \
  X(Erfc)                 \
  X(Floor)                \
  X(Ceil)                 \
  X(Round)                \
  X(Rint)                 \
  X(Reciprocal)           \
  X(Gelu)                 \
  X(GeluTanh)             \
  X(Mish)
#endif

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define FLOE_FUNCTION(NAME, EXPRESSION)                    \
  struct NAME##Function {                                  \
    template <class D, class V = hn::Vec<D>>               \
    HWY_INLINE V operator()(D d, V x, float alpha) const { \
      (void)d;                                             \
      (void)alpha;                                         \
      return EXPRESSION;                                   \
    }                                                      \
  };

// log(1 + x) by the ratio of two equally rounded terms.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log1pOf(D d, V x) {
  const V one = hn::Set(d, 1.0f), w = hn::Add(one, x);
  const V ratio = hn::Div(hn::Mul(Log(d, w), x), hn::Sub(w, one));
  const V most = hn::Set(d, 3e38f);  // beyond, the product above may be infinite
  return hn::IfThenElse(hn::Eq(w, one), x, hn::IfThenElse(hn::Gt(w, most), Log(d, w), ratio));
}

FLOE_FUNCTION(Relu, Relu(d, x))
FLOE_FUNCTION(Relu6, Relu6(d, x))
FLOE_FUNCTION(Elu, Elu(d, x))
FLOE_FUNCTION(Selu, Selu(d, x))
FLOE_FUNCTION(LeakyRelu, LeakyRelu(d, x, alpha))
FLOE_FUNCTION(Sigmoid, Sigmoid(d, x))
FLOE_FUNCTION(Tanh, Tanh(d, x))
FLOE_FUNCTION(Exp, Exp(d, x))
FLOE_FUNCTION(Expm1, Expm1(d, x))
FLOE_FUNCTION(Log, Log(d, x))
FLOE_FUNCTION(Log1p, Log1pOf(d, x))
FLOE_FUNCTION(Sqrt, hn::Sqrt(x))
FLOE_FUNCTION(Rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
FLOE_FUNCTION(Square, hn::Mul(x, x))
FLOE_FUNCTION(Neg, hn::Neg(x))
FLOE_FUNCTION(Abs, hn::Abs(x))
FLOE_FUNCTION(Softplus, Softplus(d, x))
FLOE_FUNCTION(Softsign, Softsign(d, x))
FLOE_FUNCTION(Erf, Erf(d, x))
FLOE_FUNCTION(Erfc, Erfc(d, x))
FLOE_FUNCTION(Floor, hn::Floor(x))
FLOE_FUNCTION(Ceil, hn::Ceil(x))
FLOE_FUNCTION(Round, hn::Round(x))
FLOE_FUNCTION(Rint, hn::Round(x))
FLOE_FUNCTION(Reciprocal, hn::Div(hn::Set(d, 1.0f), x))
FLOE_FUNCTION(Gelu, Gelu(d, x))
FLOE_FUNCTION(GeluTanh, GeluTanh(d, x))
FLOE_FUNCTION(Mish, Mish(d, x))
#undef FLOE_FUNCTION

template <class Function>
void Map(const float* x, float* y, size_t n, float alpha) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const Function f;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i), alpha), d, y + i);
  if (i < n) StorePartial(d, f(d, LoadPartial(d, x + i, n - i), alpha), y + i, n - i);
}

UnaryF32 UnaryAt(size_t index) {
#define FLOE_ENTRY(NAME) &Map<NAME##Function>,
  static constexpr UnaryF32 kFunctions[] = {FLOE_UNARY_F32(FLOE_ENTRY)};
#undef FLOE_ENTRY
  return kFunctions[index];
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(UnaryAt);

UnaryF32 FindUnaryF32(const std::string& op) {
#define FLOE_ENTRY(NAME) #NAME,
  static constexpr const char* kNames[] = {FLOE_UNARY_F32(FLOE_ENTRY)};
#undef FLOE_ENTRY
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (op != kNames[i]) continue;
    ChooseIsa();
    return HWY_DYNAMIC_DISPATCH(UnaryAt)(i);
  }
  return FindAngleF32(op);
}

}  // namespace floe::kernels
#endif
