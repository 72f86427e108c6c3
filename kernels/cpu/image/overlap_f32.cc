#include "kernels/cpu/image/overlap_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/image/overlap_f32.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

bool Overlaps(const BoxGroup* groups, size_t n, const Corners& box, float iou) {
  const hn::ScalableTag<float> d;
  static_assert(BoxGroup::kBoxes % (HWY_MAX_BYTES / sizeof(float)) == 0);
  const auto y0 = hn::Set(d, box.y0), x0 = hn::Set(d, box.x0), y1 = hn::Set(d, box.y1),
             x1 = hn::Set(d, box.x1), area = hn::Set(d, box.area), most = hn::Set(d, iou),
             zero = hn::Zero(d);
  for (const BoxGroup* g = groups; g != groups + n; ++g) {
    for (size_t k = 0; k < BoxGroup::kBoxes; k += hn::Lanes(d)) {
      const auto height = hn::Max(
          hn::Sub(hn::Min(y1, hn::LoadU(d, g->y1 + k)), hn::Max(y0, hn::LoadU(d, g->y0 + k))),
          zero);
      const auto width = hn::Max(
          hn::Sub(hn::Min(x1, hn::LoadU(d, g->x1 + k)), hn::Max(x0, hn::LoadU(d, g->x0 + k))),
          zero);
      const auto common = hn::Mul(height, width);
      const auto either = hn::Sub(hn::Add(area, hn::LoadU(d, g->area + k)), common);
      if (!hn::AllFalse(d, hn::Gt(hn::Div(common, either), most))) return true;
    }
  }
  return false;
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Overlaps);

OverlapsF32 PickOverlapsF32() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(Overlaps);
}

}  // namespace floe::kernels
#endif
