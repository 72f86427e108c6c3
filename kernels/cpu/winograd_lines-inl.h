// Winograd's transforms of one line of vectors, by its number of results and taps. The points are
// 0, pairs p and -p, and infinity; they were chosen for the least error in float32. Included once
// per target: include "kernels/cpu/hwy_targets.h", foreach_target.h and highway.h first.
#if defined(FLOE_KERNELS_CPU_WINOGRAD_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FLOE_KERNELS_CPU_WINOGRAD_LINES_INL_H_
#undef FLOE_KERNELS_CPU_WINOGRAD_LINES_INL_H_
#else
#define FLOE_KERNELS_CPU_WINOGRAD_LINES_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using WinogradD = hn::ScalableTag<float>;
using WinogradV = hn::Vec<WinogradD>;

// factor * x + y.
HWY_INLINE WinogradV AddTimes(float factor, WinogradV x, WinogradV y) {
  return hn::MulAdd(hn::Set(WinogradD(), factor), x, y);
}
HWY_INLINE WinogradV Times(float factor, WinogradV x) {
  return hn::Mul(hn::Set(WinogradD(), factor), x);
}

template <int kTile, int kTaps>
struct Line;

// No transform.
template <>
struct Line<1, 1> {
  static HWY_INLINE void Input(const WinogradV (&x)[1], WinogradV (&to)[1]) { to[0] = x[0]; }
  static HWY_INLINE void Weights(const WinogradV (&w)[1], WinogradV (&to)[1]) { to[0] = w[0]; }
  static HWY_INLINE void Output(const WinogradV (&m)[1], WinogradV (&y)[1]) { y[0] = m[0]; }
};

// Points 0, 1, -1, infinity.
template <>
struct Line<2, 3> {
  static HWY_INLINE void Input(const WinogradV (&x)[4], WinogradV (&to)[4]) {
    to[0] = hn::Sub(x[0], x[2]);
    to[1] = hn::Add(x[2], x[1]);
    to[2] = hn::Sub(x[2], x[1]);
    to[3] = hn::Sub(x[3], x[1]);
  }
  static HWY_INLINE void Weights(const WinogradV (&w)[3], WinogradV (&to)[4]) {
    const WinogradV even = Times(0.5f, hn::Add(w[0], w[2])), odd = Times(0.5f, w[1]);
    to[0] = w[0];
    to[1] = hn::Add(even, odd);
    to[2] = hn::Sub(even, odd);
    to[3] = w[2];
  }
  static HWY_INLINE void Output(const WinogradV (&m)[4], WinogradV (&y)[2]) {
    y[0] = hn::Add(m[0], hn::Add(m[1], m[2]));
    y[1] = hn::Add(m[3], hn::Sub(m[1], m[2]));
  }
};

// Points 0, a, -a, b, -b, infinity, whose products are exact in float32. Pairs of 1 and 2 would
// make five times the error.
struct SixPoints {
  static constexpr float a = 0.625f, b = 1.5f;
  static constexpr float aa = a * a, bb = b * b;

  static HWY_INLINE void Input(const WinogradV (&x)[6], WinogradV (&to)[6]) {
    const WinogradV even_a = AddTimes(-bb, x[2], x[4]), odd_a = AddTimes(-bb, x[1], x[3]);
    const WinogradV even_b = AddTimes(-aa, x[2], x[4]), odd_b = AddTimes(-aa, x[1], x[3]);
    to[0] = AddTimes(aa * bb, x[0], AddTimes(-(aa + bb), x[2], x[4]));
    to[1] = AddTimes(a, odd_a, even_a);
    to[2] = AddTimes(-a, odd_a, even_a);
    to[3] = AddTimes(b, odd_b, even_b);
    to[4] = AddTimes(-b, odd_b, even_b);
    to[5] = AddTimes(aa * bb, x[1], AddTimes(-(aa + bb), x[3], x[5]));
  }
  template <int kTaps>
  static HWY_INLINE void Weights(const WinogradV (&w)[kTaps], WinogradV (&to)[6]) {
    to[0] = Times(1 / (aa * bb), w[0]);
    Pair(a, 1 / (2 * aa * (aa - bb)), w, to + 1);
    Pair(b, 1 / (2 * bb * (bb - aa)), w, to + 3);
    to[5] = w[kTaps - 1];
  }
  template <int kTile>
  static HWY_INLINE void Output(const WinogradV (&m)[6], WinogradV (&y)[kTile]) {
    const WinogradV even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
    const WinogradV even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
    y[0] = hn::Add(m[0], hn::Add(even_a, even_b));
    y[1] = AddTimes(b, odd_b, Times(a, odd_a));
    if constexpr (kTile == 4) {
      y[2] = AddTimes(bb, even_b, Times(aa, even_a));
      y[3] = AddTimes(bb * b, odd_b, Times(aa * a, odd_a));
    }
    y[kTile - 1] = hn::Add(y[kTile - 1], m[5]);
  }

 private:
  // The values of the filter's polynomial at p and -p, times `scale`.
  template <int kTaps>
  static HWY_INLINE void Pair(float p, float scale, const WinogradV (&w)[kTaps], WinogradV* to) {
    const float pp = p * p;
    WinogradV even = AddTimes(pp, w[2], w[0]), odd = w[1];
    if constexpr (kTaps == 5) {
      even = AddTimes(pp * pp, w[4], even);
      odd = AddTimes(pp, w[3], odd);
    }
    even = Times(scale, even);
    to[0] = AddTimes(scale * p, odd, even);
    to[1] = AddTimes(-scale * p, odd, even);
  }
};

template <int kTile, int kTaps>
struct LineOfSix {
  static HWY_INLINE void Input(const WinogradV (&x)[6], WinogradV (&to)[6]) {
    SixPoints::Input(x, to);
  }
  static HWY_INLINE void Weights(const WinogradV (&w)[kTaps], WinogradV (&to)[6]) {
    SixPoints::Weights(w, to);
  }
  static HWY_INLINE void Output(const WinogradV (&m)[6], WinogradV (&y)[kTile]) {
    SixPoints::Output(m, y);
  }
};
template <>
struct Line<4, 3> : LineOfSix<4, 3> {};
template <>
struct Line<2, 5> : LineOfSix<2, 5> {};

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FLOE_KERNELS_CPU_WINOGRAD_LINES_INL_H_
