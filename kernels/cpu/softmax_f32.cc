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

// Lanes in order, so that the sum rounds the same for every row length that fills them alike.
template <class D, class V = hn::Vec<D>>
float SumOfVector(D d, V v) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  float sum = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) sum += lanes[i];
  return sum;
}

template <class D>
float Largest(D d, const float* x, size_t n) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V top = hn::Set(d, -__builtin_inff());
  size_t i = 0;
  const auto larger = [](V a, V b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); };
  for (; i + lanes <= n; i += lanes) top = larger(top, hn::LoadU(d, x + i));
  if (i < n)
    top = larger(top, hn::IfThenElse(hn::FirstN(d, n - i), LoadPartial(d, x + i, n - i), top));
  HWY_ALIGN float values[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(top, d, values);
  float result = values[0];
  for (size_t k = 1; k < lanes; ++k) result = values[k] > result ? values[k] : result;
  return result;
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
    const V e = Exp(d, hn::Sub(hn::LoadU(d, x + i), shift));
    sum = hn::Add(sum, e);
    if (y != nullptr) hn::StoreU(e, d, y + i);
  }
  if (i < n) {
    const V e = Exp(d, hn::Sub(LoadPartial(d, x + i, n - i), shift));
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, n - i), e));
    if (y != nullptr) StorePartial(d, e, y + i, n - i);
  }
  return SumOfVector(d, sum);
}

void Softmax(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, 1.0f / SumOfExp(d, x, Largest(d, x, n), y, n));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + i), scale), d, y + i);
  if (i < n) StorePartial(d, hn::Mul(LoadPartial(d, y + i, n - i), scale), y + i, n - i);
}

void LogSoftmax(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
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

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Softmax);
HWY_EXPORT(LogSoftmax);

SoftmaxF32 PickSoftmaxF32(bool log) {
  ChooseIsa();
  return log ? HWY_DYNAMIC_DISPATCH(LogSoftmax) : HWY_DYNAMIC_DISPATCH(Softmax);
}

}  // namespace floe::kernels
#endif
