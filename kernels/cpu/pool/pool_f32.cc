#include "kernels/cpu/pool/pool_f32.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool/pool_f32.cc"
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
#if HWY_ARCH_X86
    return hn::Max(b, a);  // the second where one is NaN
#else
    return hn::IfThenElse(hn::Gt(b, a), b, a);
#endif
  }
};
struct AddFold {
  static float Start() { return 0.0f; }
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

// Folds kVectors vectors side by side over the box, `partial` != 0: one with so many numbers.
template <class Fold, bool kMean, int kVectors>
HWY_INLINE void FoldBox(const float* x, const PoolBox& box, size_t partial, float* y) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Fold f;
  V fold[kVectors];
#pragma GCC unroll 4
  for (V& v : fold) v = hn::Set(d, Fold::Start());
  for (int64_t i = 0; i < box.count[0]; ++i) {
    for (int64_t j = 0; j < box.count[1]; ++j) {
      const float* p = x + i * box.stride[0] + j * box.stride[1];
      for (int64_t k = 0; k < box.count[2]; ++k, p += box.stride[2]) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const float* from = p + v * lanes;
          fold[v] = f(fold[v], partial == 0 ? hn::LoadU(d, from) : LoadPartial(d, from, partial));
        }
      }
    }
  }
  const V count = hn::Set(d, static_cast<float>(box.count[0] * box.count[1] * box.count[2]));
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const V result = kMean ? hn::Div(fold[v], count) : fold[v];
    if (partial == 0) {
      hn::StoreU(result, d, y + v * lanes);
    } else {
      StorePartial(d, result, y + v * lanes, partial);
    }
  }
}

template <class Fold, bool kMean>
void Pool(const float* x, const PoolRow& row, size_t channels, float* y) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  for (int64_t i = 0; i < row.count; ++i, x += row.step, y += row.out_step) {
    size_t c = 0;
    // One vector alone would wait for itself.
    for (; c + 4 * lanes <= channels; c += 4 * lanes)
      FoldBox<Fold, kMean, 4>(x + c, row.box, 0, y + c);
    for (; c + 2 * lanes <= channels; c += 2 * lanes)
      FoldBox<Fold, kMean, 2>(x + c, row.box, 0, y + c);
    for (; c + lanes <= channels; c += lanes) FoldBox<Fold, kMean, 1>(x + c, row.box, 0, y + c);
    if (c < channels) FoldBox<Fold, kMean, 1>(x + c, row.box, channels - c, y + c);
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
