#include "kernels/cpu/image/interpolate_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/interpolate_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Interpolate(const float* a, const float* b, float weight, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V w = hn::Set(d, weight);
  const auto between = [&](V from, V to)
                           HWY_ATTR { return hn::Add(from, hn::Mul(hn::Sub(to, from), w)); };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(between(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n) {
    const V part = between(LoadPartial(d, a + i, n - i), LoadPartial(d, b + i, n - i));
    StorePartial(d, part, y + i, n - i);
  }
}

void WeighFour(const float* const* from, const float* weights, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  // load(p) of four rows, weighed.
  const auto sum = [&](const auto& load) HWY_ATTR {
    auto total = hn::Mul(load(from[0]), hn::Set(d, weights[0]));
    for (int k = 1; k < 4; ++k)
      total = hn::Add(total, hn::Mul(load(from[k]), hn::Set(d, weights[k])));
    return total;
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(sum([&](const float* row) HWY_ATTR { return hn::LoadU(d, row + i); }), d, y + i);
  if (i < n) {
    const auto part = [&](const float* row) HWY_ATTR { return LoadPartial(d, row + i, n - i); };
    StorePartial(d, sum(part), y + i, n - i);
  }
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Interpolate);
HWY_EXPORT(WeighFour);

InterpolateF32 PickInterpolateF32() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(Interpolate);
}

WeighFourF32 PickWeighFourF32() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(WeighFour);
}

}  // namespace floe::kernels
#endif
