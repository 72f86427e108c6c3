#include "kernels/cpu/normalize/layer_norm_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/normalize/layer_norm_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums f(x) over a row in four running vectors. f(0) counts for lanes behind the end, which the
// mask takes away again.
template <class D, class F>
HWY_INLINE float SumOf(D d, const float* x, size_t n, const F& f) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V a = hn::Zero(d), b = a, c = a, e = a;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = f(a, hn::LoadU(d, x + i));
    b = f(b, hn::LoadU(d, x + i + lanes));
    c = f(c, hn::LoadU(d, x + i + 2 * lanes));
    e = f(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = f(a, hn::LoadU(d, x + i));
  if (i < n) b = hn::IfThenElse(hn::FirstN(d, n - i), f(b, LoadPartial(d, x + i, n - i)), b);
  a = hn::Add(hn::Add(a, b), hn::Add(c, e));
  return hn::GetLane(hn::SumOfLanes(d, a));
}

// The mean is taken away before anything is squared: rows far from zero keep their digits.
void LayerNorm(const float* x, const float* scale, const float* offset, float epsilon, float* y,
               size_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const auto count = static_cast<float>(n);
  const V mean =
      hn::Set(d, SumOf(d, x, n, [](V sum, V v) HWY_ATTR { return hn::Add(sum, v); }) / count);
  const float variance = SumOf(d, x, n,
                               [&](V sum, V v) HWY_ATTR {
                                 const V from_mean = hn::Sub(v, mean);
                                 return hn::MulAdd(from_mean, from_mean, sum);
                               }) /
                         count;
  const V factor = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Set(d, variance + epsilon)));
  const auto result = [&](V v, V s, V o)
                          HWY_ATTR { return hn::MulAdd(hn::Mul(hn::Sub(v, mean), factor), s, o); };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(result(hn::LoadU(d, x + i), hn::LoadU(d, scale + i), hn::LoadU(d, offset + i)), d,
               y + i);
  }
  if (i < n) {
    const size_t rest = n - i;
    StorePartial(d,
                 result(LoadPartial(d, x + i, rest), LoadPartial(d, scale + i, rest),
                        LoadPartial(d, offset + i, rest)),
                 y + i, rest);
  }
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(LayerNorm);

LayerNormF32 PickLayerNormF32() {
  ChooseIsa();
  return HWY_DYNAMIC_DISPATCH(LayerNorm);
}

}  // namespace floe::kernels
#endif
