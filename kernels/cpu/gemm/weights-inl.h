// Reads packed weights: floats, BFloat16, or floats less others.
// Included once per target: include "kernels/cpu/hwy_targets.h", foreach_target.h and highway.h
// first.
#if defined(FLOE_KERNELS_CPU_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FLOE_KERNELS_CPU_WEIGHTS_INL_H_
#undef FLOE_KERNELS_CPU_WEIGHTS_INL_H_
#else
#define FLOE_KERNELS_CPU_WEIGHTS_INL_H_
#endif

#include <hwy/highway.h>

#include "model/half.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector from an aligned address, widened exactly.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadWeights(D d, const float* p) {
  return hn::Load(d, p);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadWeights(D d, const BFloat16* p) {
  const hn::Rebind<uint16_t, D> half;
  const hn::RebindToUnsigned<D> whole;
  const auto bits = hn::LoadU(half, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(whole, bits)));
}

// Points to floats of which others, `apart` from them, are subtracted.
struct DifferenceOf {
  const float* p;
  int64_t apart;
  DifferenceOf operator+(int64_t n) const { return {p + n, apart}; }
  DifferenceOf& operator+=(int64_t n) {
    p += n;
    return *this;
  }
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadWeights(D d, DifferenceOf w) {
  return hn::Sub(hn::Load(d, w.p), hn::Load(d, w.p + w.apart));
}

// Asks a cache line into L2. What is subtracted has just been read, and what it is subtracted from.
template <class W>
HWY_INLINE void PrefetchWeights(const W* p) {
  __builtin_prefetch(p, 0, 2);
}
HWY_INLINE void PrefetchWeights(DifferenceOf /*w*/) {}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
