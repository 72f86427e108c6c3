#include "kernels/cpu/softmax_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"
#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// NaN is never the larger one; it shows in the sum.
template <class V>
HWY_INLINE V Larger(V a, V b) {
  return hn::IfThenElse(hn::Gt(b, a), b, a);
}

template <class D>
float Largest(D d, const float* x, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V top = hn::Set(d, -__builtin_inff());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) top = Larger(top, hn::LoadU(d, x + i));
  if (i < n)
    top = Larger(top, hn::IfThenElse(hn::FirstN(d, n - i), LoadPartial(d, x + i, n - i), top));
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadAny(D d, const float* p, size_t n) {
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : LoadPartial(d, p, n);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void StoreAny(D d, V v, float* p, size_t n) {
  if (n == hn::Lanes(d))
    hn::StoreU(v, d, p);
  else
    StorePartial(d, v, p, n);
}

// `count` lanes of the scores from x[i] on.
template <bool kKeep, class D, class V = hn::Vec<D>>
HWY_INLINE V Score(D d, const float* x, V factor, V one, const ScoreMask& mask, size_t i,
                   size_t count) {
  const V shift = mask.add != nullptr && mask.each ? LoadAny(d, mask.add + i, count) : one;
  V v = hn::MulAdd(LoadAny(d, x + i, count), factor, shift);
  if constexpr (kKeep) {
    const auto masked = hn::Eq(LoadAny(d, mask.keep + i, count), hn::Zero(d));
    v = hn::IfThenElse(masked, hn::Set(d, mask.fill), v);
  }
  return v;
}

// The scores of one row, written to y; gives the largest of them.
template <bool kKeep, class D>
float ScaleAndMask(D d, const float* x, float scale, const ScoreMask& mask, float* y, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V factor = hn::Set(d, scale), one = hn::Set(d, mask.add == nullptr ? 0.0f : *mask.add);
  V top = hn::Set(d, -__builtin_inff());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V v = Score<kKeep>(d, x, factor, one, mask, i, lanes);
    top = Larger(top, v);
    hn::StoreU(v, d, y + i);
  }
  if (i < n) {
    const V v = Score<kKeep>(d, x, factor, one, mask, i, n - i);
    top = Larger(top, hn::IfThenElse(hn::FirstN(d, n - i), v, top));
    StorePartial(d, v, y + i, n - i);
  }
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

// Sum of e^(x - top), stored to y unless it is null.
template <class D>
float SumOfExp(D d, const float* x, float top, float* y, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V shift = hn::Set(d, top);
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V e = ExpUpToZero(d, hn::Sub(hn::LoadU(d, x + i), shift));
    sum = hn::Add(sum, e);
    if (y != nullptr) hn::StoreU(e, d, y + i);
  }
  if (i < n) {
    const V e = ExpUpToZero(d, hn::Sub(LoadPartial(d, x + i, n - i), shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n - i), e));
    if (y != nullptr) StorePartial(d, e, y + i, n - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// The softmax of x, whose largest number is `top`.
template <class D>
void Finish(D d, const float* x, float top, float* y, size_t n) {
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, 1.0f / SumOfExp(d, x, top, y, n));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + i), scale), d, y + i);
  if (i < n) StorePartial(d, hn::Mul(LoadPartial(d, y + i, n - i), scale), y + i, n - i);
}

// The softmax of kRows rows that each fit one vector, with the bits of Finish. All are loaded
// before the first is stored: a load next to a masked store waits for it.
template <size_t kRows, class D>
HWY_INLINE void SoftmaxOfVectors(D d, const float* x, float* y, size_t n) {
  using V = hn::Vec<D>;
  const auto used = hn::FirstN(d, n);
  const V none = hn::Set(d, -__builtin_inff()), one = hn::Set(d, 1.0f);
  V v[kRows];
  for (size_t i = 0; i < kRows; ++i) v[i] = LoadAny(d, x + i * n, n);
  for (size_t i = 0; i < kRows; ++i) {
    const V top = hn::MaxOfLanes(d, hn::IfThenElse(used, Larger(none, v[i]), none));
    v[i] = hn::IfThenElseZero(used, ExpUpToZero(d, hn::Sub(v[i], top)));
    v[i] = hn::Mul(v[i], hn::Div(one, hn::SumOfLanes(d, v[i])));
  }
  for (size_t i = 0; i < kRows; ++i) StoreAny(d, v[i], y + i * n, n);
}

void Softmax(const float* x, float* y, size_t rows, size_t n) {
  const hn::ScalableTag<float> d;
  size_t i = 0;
  if (n <= hn::Lanes(d)) {
    constexpr size_t kTogether = 4;
    for (; i + kTogether <= rows; i += kTogether)
      SoftmaxOfVectors<kTogether>(d, x + i * n, y + i * n, n);
    for (; i < rows; ++i) SoftmaxOfVectors<1>(d, x + i * n, y + i * n, n);
  }
  for (; i < rows; ++i) Finish(d, x + i * n, Largest(d, x + i * n, n), y + i * n, n);
}

void ScaledSoftmax(const float* x, float scale, const ScoreMask& mask, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  if (mask.keep == nullptr) {
    Finish(d, y, ScaleAndMask<false>(d, x, scale, mask, y, n), y, n);
    return;
  }
  Finish(d, y, ScaleAndMask<true>(d, x, scale, mask, y, n), y, n);
  for (size_t i = 0; mask.zero && i < n; ++i) {
    if (mask.keep[i] == 0) y[i] = 0;
  }
}

template <class D>
void LogSoftmaxOfRow(D d, const float* x, float* y, size_t n) {
  const size_t lanes = hn::Lanes(d);
  const float top = Largest(d, x, n);
  const auto shift = hn::Set(d, top);
  const auto log_sum = Log(d, hn::Set(d, SumOfExp(d, x, top, nullptr, n)));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, x + i), shift), log_sum), d, y + i);
  if (i < n)
    StorePartial(d, hn::Sub(hn::Sub(LoadPartial(d, x + i, n - i), shift), log_sum), y + i, n - i);
}

void LogSoftmax(const float* x, float* y, size_t rows, size_t n) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < rows; ++i) LogSoftmaxOfRow(d, x + i * n, y + i * n, n);
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Softmax);
HWY_EXPORT(ScaledSoftmax);
HWY_EXPORT(LogSoftmax);

SoftmaxF32 PickSoftmaxF32(bool log) {
  ChooseIsa();
  return log ? HWY_DYNAMIC_DISPATCH(LogSoftmax) : HWY_DYNAMIC_DISPATCH(Softmax);
}

ScaledSoftmaxF32 PickScaledSoftmaxF32() {
  ChooseIsa();
  return HWY_DYNAMIC_DISPATCH(ScaledSoftmax);
}

}  // namespace floe::kernels
#endif
