// Discrete Fourier transforms of a few points in registers, a channel in each lane.
// Included once per target: include "kernels/cpu/hwy_targets.h", foreach_target.h and highway.h
// first.
#if defined(FLOE_KERNELS_CPU_FFT_CODELETS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FLOE_KERNELS_CPU_FFT_CODELETS_INL_H_
#undef FLOE_KERNELS_CPU_FFT_CODELETS_INL_H_
#else
#define FLOE_KERNELS_CPU_FFT_CODELETS_INL_H_
#endif

#include <hwy/highway.h>

// The loops must vanish, so that the points stay in registers.
#undef FLOE_UNROLL
#define FLOE_UNROLL _Pragma("GCC unroll 32")

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FftD = hn::ScalableTag<float>;
using FftV = hn::Vec<FftD>;

struct Complex {
  FftV r, i;
};

HWY_INLINE Complex operator+(const Complex& a, const Complex& b) {
  return {hn::Add(a.r, b.r), hn::Add(a.i, b.i)};
}
HWY_INLINE Complex operator-(const Complex& a, const Complex& b) {
  return {hn::Sub(a.r, b.r), hn::Sub(a.i, b.i)};
}
// a * factor + b
HWY_INLINE Complex ScaleAdd(const Complex& a, float factor, const Complex& b) {
  const FftV f = hn::Set(FftD(), factor);
  return {hn::MulAdd(a.r, f, b.r), hn::MulAdd(a.i, f, b.i)};
}
HWY_INLINE Complex Scale(const Complex& a, float factor) {
  const FftV f = hn::Set(FftD(), factor);
  return {hn::Mul(a.r, f), hn::Mul(a.i, f)};
}
// a - i * b and a + i * b
HWY_INLINE Complex MinusI(const Complex& a, const Complex& b) {
  return {hn::Add(a.r, b.i), hn::Sub(a.i, b.r)};
}
HWY_INLINE Complex PlusI(const Complex& a, const Complex& b) {
  return {hn::Sub(a.r, b.i), hn::Add(a.i, b.r)};
}
// a * (c - i s)
HWY_INLINE Complex Turn(const Complex& a, FftV c, FftV s) {
  return {hn::MulAdd(a.r, c, hn::Mul(a.i, s)), hn::NegMulAdd(a.r, s, hn::Mul(a.i, c))};
}

// x[k] becomes the sum over n of x[n] * exp(-2 pi i n k / R). For any R below.
template <int R>
HWY_INLINE void Dft(Complex (&x)[R]);

HWY_INLINE void Dft3(Complex (&x)[3]) {
  const Complex sum = x[1] + x[2], turned = Scale(x[1] - x[2], 0.86602540378443865f);
  const Complex middle = ScaleAdd(sum, -0.5f, x[0]);
  x[0] = x[0] + sum;
  x[1] = MinusI(middle, turned);
  x[2] = PlusI(middle, turned);
}

HWY_INLINE void Dft4(Complex (&x)[4]) {
  const Complex a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
  x[0] = a + c;
  x[1] = MinusI(b, d);
  x[2] = a - c;
  x[3] = PlusI(b, d);
}

HWY_INLINE void Dft5(Complex (&x)[5]) {
  constexpr float kC1 = 0.30901699437494742f, kC2 = -0.80901699437494742f;
  constexpr float kS1 = 0.95105651629515357f, kS2 = 0.58778525229247313f;
  const Complex a = x[1] + x[4], b = x[2] + x[3], c = x[1] - x[4], d = x[2] - x[3];
  const Complex m1 = ScaleAdd(a, kC1, ScaleAdd(b, kC2, x[0]));
  const Complex m2 = ScaleAdd(a, kC2, ScaleAdd(b, kC1, x[0]));
  const Complex t1 = ScaleAdd(c, kS1, Scale(d, kS2)), t2 = ScaleAdd(c, kS2, Scale(d, -kS1));
  x[0] = x[0] + a + b;
  x[1] = MinusI(m1, t1);
  x[2] = MinusI(m2, t2);
  x[3] = PlusI(m2, t2);
  x[4] = PlusI(m1, t1);
}

// For A and B without a common divisor: no factors between the two steps (Good and Thomas).
template <int A, int B>
struct PrimeMap {
  int in[A][B], out[A][B];
  constexpr PrimeMap() : in(), out() {
    for (int a = 0; a < A; ++a) {
      for (int b = 0; b < B; ++b) {
        in[a][b] = (B * a + A * b) % (A * B);
        for (int k = 0; k < A * B; ++k)
          if (k % A == a && k % B == b) out[a][b] = k;
      }
    }
  }
};

template <int A, int B>
HWY_INLINE void PrimeDft(Complex (&x)[A * B]) {
  constexpr PrimeMap<A, B> kMap;
  Complex t[A][B];
  FLOE_UNROLL for (int b = 0; b < B; ++b) {
    Complex part[A];
    FLOE_UNROLL for (int a = 0; a < A; ++a) part[a] = x[kMap.in[a][b]];
    Dft<A>(part);
    FLOE_UNROLL for (int a = 0; a < A; ++a) t[a][b] = part[a];
  }
  FLOE_UNROLL for (int a = 0; a < A; ++a) {
    Dft<B>(t[a]);
    FLOE_UNROLL for (int b = 0; b < B; ++b) x[kMap.out[a][b]] = t[a][b];
  }
}

// cos and sin of 2 pi j / 16.
inline constexpr float kCos16[10] = {
    1.0f,  0.92387953251128674f,  0.70710678118654752f,  0.38268343236508977f,
    0.0f,  -0.38268343236508977f, -0.70710678118654752f, -0.92387953251128674f,
    -1.0f, -0.92387953251128674f};
inline constexpr float kSin16[10] = {
    0.0f, 0.38268343236508977f, 0.70710678118654752f, 0.92387953251128674f,
    1.0f, 0.92387953251128674f, 0.70710678118654752f, 0.38268343236508977f,
    0.0f, -0.38268343236508977f};

// For 8 and 16 points (Cooley and Tukey).
template <int A, int B>
HWY_INLINE void SplitDft(Complex (&x)[A * B]) {
  constexpr int kStep = 16 / (A * B);
  Complex t[A][B];
  FLOE_UNROLL for (int b = 0; b < B; ++b) {
    Complex part[A];
    FLOE_UNROLL for (int a = 0; a < A; ++a) part[a] = x[B * a + b];
    Dft<A>(part);
    FLOE_UNROLL for (int a = 0; a < A; ++a) {
      const int j = a * b * kStep;
      t[a][b] =
          j == 0 ? part[a] : Turn(part[a], hn::Set(FftD(), kCos16[j]), hn::Set(FftD(), kSin16[j]));
    }
  }
  FLOE_UNROLL for (int a = 0; a < A; ++a) {
    Dft<B>(t[a]);
    FLOE_UNROLL for (int b = 0; b < B; ++b) x[a + A * b] = t[a][b];
  }
}

template <int R>
HWY_INLINE void Dft(Complex (&x)[R]) {
  if constexpr (R == 2) {
    const Complex sum = x[0] + x[1];
    x[1] = x[0] - x[1];
    x[0] = sum;
  } else if constexpr (R == 3) {
    Dft3(x);
  } else if constexpr (R == 4) {
    Dft4(x);
  } else if constexpr (R == 5) {
    Dft5(x);
  } else if constexpr (R == 6) {
    PrimeDft<2, 3>(x);
  } else if constexpr (R == 8) {
    SplitDft<2, 4>(x);
  } else if constexpr (R == 10) {
    PrimeDft<2, 5>(x);
  } else if constexpr (R == 12) {
    PrimeDft<3, 4>(x);
  } else if constexpr (R == 16) {
    SplitDft<4, 4>(x);
  } else {
    static_assert(R == 20);
    PrimeDft<4, 5>(x);
  }
}

}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FLOE_KERNELS_CPU_FFT_CODELETS_INL_H_
