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

// Points 0, 1/2, -1/2, 1, -1, 2, -2, infinity.
struct EightPoints {
  // The polynomial whose roots are all points but infinity is x^7 - 5.25 x^5 + 5.25 x^3 - x.
  static constexpr float kFactor = 5.25f;

  static HWY_INLINE void Input(const WinogradV (&x)[8], WinogradV (&to)[8]) {
    to[0] = AddTimes(kFactor, hn::Sub(x[2], x[4]), hn::Sub(x[6], x[0]));
    InputPair(0.5f, 5, 4, x, to + 1);
    InputPair(1, 4.25f, 1, x, to + 3);
    InputPair(2, 1.25f, 0.25f, x, to + 5);
    to[7] = AddTimes(kFactor, hn::Sub(x[3], x[5]), hn::Sub(x[7], x[1]));
  }
  template <int kTaps>
  static HWY_INLINE void Weights(const WinogradV (&w)[kTaps], WinogradV (&to)[8]) {
    to[0] = hn::Neg(w[0]);
    WeightsPair(0.5f, 1 / (0.5f * (0.0625f - 0.25f * 5 + 4)), w, to + 1);
    WeightsPair(1, 1 / (2.0f * (1 - 4.25f + 1)), w, to + 3);
    WeightsPair(2, 1 / (8.0f * (16 - 4 * 1.25f + 0.25f)), w, to + 5);
    to[7] = w[kTaps - 1];
  }
  template <int kTile>
  static HWY_INLINE void Output(const WinogradV (&m)[8], WinogradV (&y)[kTile]) {
    WinogradV even[3], odd[3];
    for (int i = 0; i < 3; ++i) {
      even[i] = hn::Add(m[2 * i + 1], m[2 * i + 2]);
      odd[i] = hn::Sub(m[2 * i + 1], m[2 * i + 2]);
    }
    y[0] = hn::Add(hn::Add(m[0], even[0]), hn::Add(even[1], even[2]));
    y[1] = AddTimes(0.5f, odd[0], AddTimes(2, odd[2], odd[1]));
    if constexpr (kTile == 4) {
      y[2] = AddTimes(0.25f, even[0], AddTimes(4, even[2], even[1]));
      y[3] = AddTimes(0.125f, odd[0], AddTimes(8, odd[2], odd[1]));
    }
    y[kTile - 1] = hn::Add(y[kTile - 1], m[7]);
  }

 private:
  // The squares of the other two pairs have this sum and product.
  static HWY_INLINE void InputPair(float p, float sum, float product, const WinogradV (&x)[8],
                                   WinogradV* to) {
    const WinogradV even = AddTimes(product, x[2], AddTimes(-sum, x[4], x[6]));
    const WinogradV odd = AddTimes(product, x[1], AddTimes(-sum, x[3], x[5]));
    to[0] = AddTimes(p, odd, even);
    to[1] = AddTimes(-p, odd, even);
  }
  // The values of the filter's polynomial at p and -p, times `scale`.
  template <int kTaps>
  static HWY_INLINE void WeightsPair(float p, float scale, const WinogradV (&w)[kTaps],
                                     WinogradV* to) {
    WinogradV even = w[kTaps - 1], odd = w[kTaps - 2];
    for (int i = kTaps - 3; i >= 0; i -= 2) even = AddTimes(p * p, even, w[i]);
    for (int i = kTaps - 4; i >= 0; i -= 2) odd = AddTimes(p * p, odd, w[i]);
    even = Times(scale, even);
    to[0] = AddTimes(scale * p, odd, even);
    to[1] = AddTimes(-scale * p, odd, even);
  }
};

template <class Points, int kTile, int kTaps>
struct LineOf {
  static constexpr int kPoints = kTile + kTaps - 1;
  static HWY_INLINE void Input(const WinogradV (&x)[kPoints], WinogradV (&to)[kPoints]) {
    Points::Input(x, to);
  }
  static HWY_INLINE void Weights(const WinogradV (&w)[kTaps], WinogradV (&to)[kPoints]) {
    Points::Weights(w, to);
  }
  static HWY_INLINE void Output(const WinogradV (&m)[kPoints], WinogradV (&y)[kTile]) {
    Points::Output(m, y);
  }
};
template <>
struct Line<4, 3> : LineOf<SixPoints, 4, 3> {};
template <>
struct Line<2, 5> : LineOf<SixPoints, 2, 5> {};
template <>
struct Line<4, 5> : LineOf<EightPoints, 4, 5> {};
template <>
struct Line<2, 7> : LineOf<EightPoints, 2, 7> {};

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FLOE_KERNELS_CPU_WINOGRAD_LINES_INL_H_
