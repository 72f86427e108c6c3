#include "kernels/cpu/elementwise/binary_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/binary_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

#include "kernels/cpu/partial-inl.h"

// The functions, in the order of every table below.
#ifndef FLOE_BINARY_F32
// clang-format off
#define FLOE_BINARY_F32(X) \
  X(Add) X(Sub) X(Mul) X(RealDiv) X(Maximum) X(Minimum) X(SquaredDifference) X(DivNoNan) \
  X(FloorDiv) X(Atan2)
// clang-format on
#endif

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#define FLOE_FUNCTION(NAME, EXPRESSION)       \
  struct NAME##Function {                     \
    template <class V>                        \
    HWY_INLINE V operator()(V a, V b) const { \
      return EXPRESSION;                      \
    }                                         \
  };

template <class V>
HWY_INLINE V SquareOf(V x) {
  return hn::Mul(x, x);
}

// By the angle of the smaller component to the larger, turned to its octant by the signs, which
// zeros have too.
template <class V>
HWY_INLINE V AngleOf(V y, V x) {
  const hn::DFromV<V> d;
  const auto width = hn::Abs(x), height = hn::Abs(y);
  const auto steep = hn::Gt(height, width);
  const auto larger = hn::IfThenElse(steep, height, width);
  const auto smaller = hn::IfThenElse(steep, width, height);
  const auto ratio = hn::Div(smaller, larger);
  // 0 / 0 is 0, and of two infinities 1.
  const auto equal = hn::Eq(smaller, larger);
  const auto slope = hn::IfThenElse(
      equal, hn::IfThenZeroElse(hn::Eq(larger, hn::Zero(d)), hn::Set(d, 1.0f)), ratio);
  auto angle = hn::Atan(d, slope);
  angle = hn::IfThenElse(steep, hn::Sub(hn::Set(d, 1.57079637f), angle), angle);
  const auto left = hn::Lt(hn::CopySign(hn::Set(d, 1.0f), x), hn::Zero(d));
  angle = hn::IfThenElse(left, hn::Sub(hn::Set(d, 3.14159274f), angle), angle);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), hn::CopySign(angle, y));
}

FLOE_FUNCTION(Add, hn::Add(a, b))
FLOE_FUNCTION(Sub, hn::Sub(a, b))
FLOE_FUNCTION(Mul, hn::Mul(a, b))
FLOE_FUNCTION(RealDiv, hn::Div(a, b))
// NaN in either operand is the result.
FLOE_FUNCTION(Maximum, hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b))
FLOE_FUNCTION(Minimum, hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b))
FLOE_FUNCTION(SquaredDifference, SquareOf(hn::Sub(a, b)))
FLOE_FUNCTION(DivNoNan, hn::IfThenZeroElse(hn::Eq(b, hn::Zero(hn::DFromV<V>())), hn::Div(a, b)))
FLOE_FUNCTION(FloorDiv, hn::Floor(hn::Div(a, b)))
FLOE_FUNCTION(Atan2, AngleOf(a, b))
#undef FLOE_FUNCTION

template <class Function>
void Vectors(const float* a, const float* b, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const Function f;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n)
    StorePartial(d, f(LoadPartial(d, a + i, n - i), LoadPartial(d, b + i, n - i)), y + i, n - i);
}

template <class Function>
void ScalarB(const float* a, const float* b, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto vb = hn::Set(d, *b);
  const Function f;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, a + i), vb), d, y + i);
  if (i < n) StorePartial(d, f(LoadPartial(d, a + i, n - i), vb), y + i, n - i);
}

template <class Function>
void ScalarA(const float* a, const float* b, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto va = hn::Set(d, *a);
  const Function f;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(va, hn::LoadU(d, b + i)), d, y + i);
  if (i < n) StorePartial(d, f(va, LoadPartial(d, b + i, n - i)), y + i, n - i);
}

BinaryF32Set BinaryAt(size_t index) {
#define FLOE_ENTRY(NAME) \
  {&Vectors<NAME##Function>, &ScalarB<NAME##Function>, &ScalarA<NAME##Function>},
  static constexpr BinaryF32Set kFunctions[] = {FLOE_BINARY_F32(FLOE_ENTRY)};
#undef FLOE_ENTRY
  return kFunctions[index];
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(BinaryAt);

BinaryF32Set FindBinaryF32(const std::string& op) {
#define FLOE_ENTRY(NAME) #NAME,
  static constexpr const char* kNames[] = {FLOE_BINARY_F32(FLOE_ENTRY)};
#undef FLOE_ENTRY
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (op != kNames[i]) continue;
    ChooseIsa();
    return HWY_DYNAMIC_DISPATCH(BinaryAt)(i);
  }
  return {};
}

}  // namespace floe::kernels
#endif
