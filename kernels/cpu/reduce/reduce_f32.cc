#include "kernels/cpu/reduce/reduce_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce/reduce_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct AddFold {
  static float Neutral() { return 0.0f; }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct MulFold {
  static float Neutral() { return 1.0f; }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct MaxFold {
  static float Neutral() { return -__builtin_inff(); }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
  }
};
struct MinFold {
  static float Neutral() { return __builtin_inff(); }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b);
  }
};

// The lanes of a vector folded in halves.
template <class Function, class D, class V = hn::Vec<D>>
HWY_INLINE float FoldLanes([[maybe_unused]] D d, V v) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return FoldLanes<Function>(half, Function()(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
#endif
  return hn::GetLane(v);
}

// Four running vectors, then one, then its lanes in halves. Lanes behind the end hold the neutral
// value.
template <class Function>
float Fold(const float* x, size_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const Function f;
  const V neutral = hn::Set(d, Function::Neutral());
  V a = neutral, b = neutral, c = neutral, e = neutral;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = f(a, hn::LoadU(d, x + i));
    b = f(b, hn::LoadU(d, x + i + lanes));
    c = f(c, hn::LoadU(d, x + i + 2 * lanes));
    e = f(e, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = f(a, hn::LoadU(d, x + i));
  if (i < n) {
    const V part = LoadPartial(d, x + i, n - i);
    b = f(b, hn::IfThenElse(hn::FirstN(d, n - i), part, neutral));
  }
  return FoldLanes<Function>(d, f(f(a, b), f(c, e)));
}

FoldsF32 Folds() { return {&Fold<AddFold>, &Fold<MulFold>, &Fold<MaxFold>, &Fold<MinFold>}; }

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Folds);

FoldsF32 PickFoldsF32() {
  ChooseIsa();
  return HWY_DYNAMIC_DISPATCH(Folds)();
}

}  // namespace floe::kernels
#endif
