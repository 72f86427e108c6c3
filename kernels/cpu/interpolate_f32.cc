#include "kernels/cpu/interpolate_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/interpolate_f32.cc"
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

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Interpolate);

InterpolateF32 PickInterpolateF32() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(Interpolate);
}

}  // namespace floe::kernels
#endif
