#include "kernels/cpu/pool_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct LargerFold {
  static float Start() { return -__FLT_MAX__; }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Gt(b, a), b, a);
  }
};
struct AddFold {
  static float Start() { return 0.0f; }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

// Folds load(position) over the box.
template <class Fold, class V, class Load>
HWY_INLINE V FoldBox(V fold, const float* x, const PoolBox& box, const Load& load) {
  const Fold f;
  for (int64_t i = 0; i < box.count[0]; ++i) {
    for (int64_t j = 0; j < box.count[1]; ++j) {
      const float* p = x + i * box.stride[0] + j * box.stride[1];
      for (int64_t k = 0; k < box.count[2]; ++k, p += box.stride[2]) fold = f(fold, load(p));
    }
  }
  return fold;
}

template <class Fold, bool kMean>
void Pool(const float* x, const PoolBox& box, size_t channels, float* y) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V start = hn::Set(d, Fold::Start());
  const V count = hn::Set(d, static_cast<float>(box.count[0] * box.count[1] * box.count[2]));
  size_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    V v =
        FoldBox<Fold>(start, x + c, box, [&](const float* p) HWY_ATTR { return hn::LoadU(d, p); });
    if (kMean) v = hn::Div(v, count);
    hn::StoreU(v, d, y + c);
  }
  if (c < channels) {
    const size_t n = channels - c;
    V v = FoldBox<Fold>(start, x + c, box,
                        [&](const float* p) HWY_ATTR { return LoadPartial(d, p, n); });
    if (kMean) v = hn::Div(v, count);
    StorePartial(d, v, y + c, n);
  }
}

PoolsF32 Pools() { return {&Pool<LargerFold, false>, &Pool<AddFold, true>}; }

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
HWY_EXPORT(Pools);

PoolsF32 PickPoolsF32() {
  ChooseIsa();
  return HWY_DYNAMIC_DISPATCH(Pools)();
}

}  // namespace floe::kernels
#endif
