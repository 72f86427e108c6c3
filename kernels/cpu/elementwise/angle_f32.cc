#include "kernels/cpu/elementwise/angle_f32.h"

#include <cmath>
#include <utility>

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/angle_f32.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

// Its names are those of vector_math-inl.h, so that the two cannot be in one file.
#include <hwy/contrib/math/math-inl.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// fast(x), and exact(x) for lanes beyond the range in which the library reduces an angle well, and
// for NaN, which it would make an integer of.
template <class Fast, class Exact>
HWY_INLINE V OfAngle(V x, const Fast& fast, const Exact& exact) {
  const D d;
  const auto near = hn::Le(hn::Abs(x), hn::Set(d, 30000.0f));
  const V y = fast(hn::IfThenElseZero(near, x));
  if (HWY_LIKELY(hn::AllTrue(d, near))) return y;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = exact(lanes[i]);
  return hn::IfThenElse(near, y, hn::Load(d, lanes));
}

// Of numbers that are no sine or cosine, NaN.
template <class F>
HWY_INLINE V OfRatio(V x, const F& f) {
  const D d;
  return hn::IfThenElse(hn::Le(hn::Abs(x), hn::Set(d, 1.0f)), f(x), hn::NaN(d));
}

struct SinFunction {
  HWY_INLINE V operator()(V x) const {
    const V y = OfAngle(
        x, [](V v) HWY_ATTR { return hn::Sin(D(), v); }, [](float v) { return std::sin(v); });
    return hn::IfThenElse(hn::Eq(x, hn::Zero(D())), x, y);  // -0 too
  }
};
struct CosFunction {
  HWY_INLINE V operator()(V x) const {
    return OfAngle(
        x, [](V v) HWY_ATTR { return hn::Cos(D(), v); }, [](float v) { return std::cos(v); });
  }
};
struct AsinFunction {
  HWY_INLINE V operator()(V x) const {
    return OfRatio(x, [](V v) HWY_ATTR { return hn::Asin(D(), v); });
  }
};
struct AcosFunction {
  HWY_INLINE V operator()(V x) const {
    return OfRatio(x, [](V v) HWY_ATTR { return hn::Acos(D(), v); });
  }
};
struct AtanFunction {
  HWY_INLINE V operator()(V x) const { return hn::Atan(D(), x); }
};

template <class Function>
void Map(const float* x, float* y, size_t n, float) {
  const D d;
  const Function f;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StorePartial(d, f(LoadPartial(d, x + i, n - i)), y + i, n - i);
}

UnaryF32 AngleAt(size_t index) {
  static constexpr UnaryF32 kFunctions[] = {&Map<SinFunction>, &Map<CosFunction>,
                                            &Map<AsinFunction>, &Map<AcosFunction>,
                                            &Map<AtanFunction>};
  return kFunctions[index];
}

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(AngleAt);

UnaryF32 FindAngleF32(const std::string& op) {
  static constexpr const char* kNames[] = {"Sin", "Cos", "Asin", "Acos", "Atan"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (op != kNames[i]) continue;
    ChooseIsa();
    return HWY_DYNAMIC_DISPATCH(AngleAt)(i);
  }
  return nullptr;
}

}  // namespace floe::kernels
#endif
