// Loads and stores of fewer floats than a vector holds, which touch no other memory.
// Included once per target: include "kernels/cpu/hwy_targets.h", foreach_target.h and highway.h
// first.
#if defined(FLOE_KERNELS_CPU_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FLOE_KERNELS_CPU_PARTIAL_INL_H_
#undef FLOE_KERNELS_CPU_PARTIAL_INL_H_
#else
#define FLOE_KERNELS_CPU_PARTIAL_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes [n, Lanes) are 0. 0 < n < Lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadPartial(D d, const float* p, size_t n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, n), d, p);  // masked-off lanes cannot fault
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  for (size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return hn::Load(d, lanes);
#endif
}

// Stores lanes [0, n). 0 < n < Lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void StorePartial(D d, V v, float* p, size_t n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, n), d, p);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
#endif
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FLOE_KERNELS_CPU_PARTIAL_INL_H_
