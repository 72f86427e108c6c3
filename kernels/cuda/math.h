// Functions with the same bits on a GPU and on the emulator: made of additions, products, Fma,
// correctly rounded division and square root, and bits. math_test.cc measures them against float64:
//
//   Exp, Expm1, Log, Log1p         2 ulp (Exp also where the result is denormal)
//   Tanh, Sigmoid, Erf, Softplus   3 ulp
//   Erfc                           6 ulp (also at 10, where it is denormal)
//
// Special numbers are those of C's functions; a NaN gives a NaN.
#pragma once

#include "kernels/cuda/gpu.h"

namespace floe::cuda {

constexpr uint32_t kInfinityBits = 0x7f800000u;

GPU_DEVICE float Infinity() { return FloatOfBits(kInfinityBits); }
GPU_DEVICE float NaN() { return FloatOfBits(0x7fc00000u); }
GPU_DEVICE bool IsNaN(float x) { return x != x; }
GPU_DEVICE float Abs(float x) { return FloatOfBits(BitsOfFloat(x) & 0x7fffffffu); }
GPU_DEVICE float CopySign(float size, float sign) {
  return FloatOfBits((BitsOfFloat(size) & 0x7fffffffu) | (BitsOfFloat(sign) & 0x80000000u));
}

GPU_DEVICE float Div(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
GPU_DEVICE float Sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}
GPU_DEVICE float Rsqrt(float x) { return Div(1.0f, Sqrt(x)); }

// The larger and the smaller one; NaN where either is.
GPU_DEVICE float Max(float a, float b) { return a > b || IsNaN(a) ? a : b; }
GPU_DEVICE float Min(float a, float b) { return a < b || IsNaN(a) ? a : b; }

// 2^n, for n in [-126, 127].
GPU_DEVICE float PowerOfTwo(int n) { return FloatOfBits(static_cast<uint32_t>(n + 127) << 23); }

namespace math {

constexpr float kLog2Hi = 0.693145751953125f;  // its last 9 bits are 0: products with n are exact
constexpr float kLog2Lo = 1.42860677e-6f;

// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| < 2^20.
GPU_DEVICE float Reduce(float x, int* n) {
  const float magic = 12582912.0f;  // 1.5 * 2^23: a sum with it has no fraction
  const float rounded = Fma(x, 1.44269504f, magic) - magic;
  *n = static_cast<int>(rounded);
  return Fma(rounded, -kLog2Lo, Fma(rounded, -kLog2Hi, x));
}
// e^r - 1, for such r.
GPU_DEVICE float Expm1OfSmall(float r) {
  float p = 1.99209579e-4f;
  p = Fma(p, r, 1.39483856e-3f);
  p = Fma(p, r, 8.33326019e-3f);
  p = Fma(p, r, 4.16662358e-2f);
  p = Fma(p, r, 1.66666672e-1f);
  p = Fma(p, r, 0.5f);
  return Fma(p * r, r, r);
}
// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
GPU_DEVICE float Log1pOfSmall(float f) {
  float p = 6.91536814e-2f;
  p = Fma(p, f, -1.17898077e-1f);
  p = Fma(p, f, 1.18729763e-1f);
  p = Fma(p, f, -1.23843484e-1f);
  p = Fma(p, f, 1.42186582e-1f);
  p = Fma(p, f, -1.6669251e-1f);
  p = Fma(p, f, 2.00022265e-1f);
  p = Fma(p, f, -2.49999866e-1f);
  p = Fma(p, f, 3.33333105e-1f);
  const float square = f * f;
  return f + Fma(p * f, square, -0.5f * square);
}
// x = 2^n (1 + f), for positive normal x.
GPU_DEVICE float Split(float x, int* n) {
  const uint32_t bits = BitsOfFloat(x) - 0x3f3504f3u;  // of sqrt(1/2)
  *n = static_cast<int>(bits) >> 23;
  return FloatOfBits((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}
// erf(x) for |x| <= 1.
GPU_DEVICE float ErfOfSmall(float x) {
  const float square = x * x;
  float p = -9.68013683e-6f;
  p = Fma(p, square, 1.12705449e-4f);
  p = Fma(p, square, -8.48471129e-4f);
  p = Fma(p, square, 5.22107491e-3f);
  p = Fma(p, square, -2.68654451e-2f);
  p = Fma(p, square, 1.12837829e-1f);
  p = Fma(p, square, -3.76126379e-1f);
  p = Fma(p, square, 1.28379166e-1f);
  return Fma(p, x, x);
}

}  // namespace math

GPU_DEVICE float Exp(float x) {
  if (!(x < 88.7228394f)) return IsNaN(x) ? x : Infinity();
  if (x < -103.972084f) return 0;
  int n;
  const float p = math::Expm1OfSmall(math::Reduce(x, &n)) + 1.0f;
  const int half = n / 2;  // 2^n itself may be no normal number
  return p * PowerOfTwo(half) * PowerOfTwo(n - half);
}

GPU_DEVICE float Expm1(float x) {
  if (!(x < 30.0f)) return Exp(x);
  if (x < -20.0f) return -1.0f;
  if (x == 0) return x;
  int n;
  const float p = math::Expm1OfSmall(math::Reduce(x, &n));
  if (n == 0) return p;
  const float power = PowerOfTwo(n);
  return Fma(p, power, power - 1.0f);
}

GPU_DEVICE float Log(float x) {
  if (!(x > 0)) return x == 0 ? -Infinity() : NaN();
  if (BitsOfFloat(x) >= kInfinityBits) return x;
  float shift = 0;
  if (x < 1.17549435e-38f) {
    x = x * 8388608.0f;
    shift = -23.0f;
  }
  int n;
  const float f = math::Split(x, &n);
  const float exponent = static_cast<float>(n) + shift;
  return Fma(exponent, math::kLog2Hi, Fma(exponent, math::kLog2Lo, math::Log1pOfSmall(f)));
}

GPU_DEVICE float Log1p(float x) {
  if (!(x > -1.0f)) return x == -1.0f ? -Infinity() : NaN();
  if (Abs(x) < 0.25f) return x == 0 ? x : math::Log1pOfSmall(x);
  const float sum = 1.0f + x;
  if (BitsOfFloat(sum) >= kInfinityBits) return sum;
  const float lost = x < 1.0f ? x - (sum - 1.0f) : 1.0f - (sum - x);
  return Log(sum) + Div(lost, sum);
}

GPU_DEVICE float Tanh(float x) {
  const float size = Abs(x);
  if (!(size < 10.0f)) return IsNaN(x) ? x : CopySign(1.0f, x);
  const float e = Expm1(2.0f * size);
  return CopySign(Div(e, e + 2.0f), x);
}

GPU_DEVICE float Sigmoid(float x) {
  const float e = Exp(-Abs(x));
  return Div(x < 0 ? e : 1.0f, 1.0f + e);
}

// ln(1 + e^x).
GPU_DEVICE float Softplus(float x) {
  return (x > 0 ? x : 0.0f) + Log1p(Exp(IsNaN(x) ? x : -Abs(x)));
}

// 1 - erf(x), for x >= 1/2.
GPU_DEVICE float ErfcOfLarge(float x) {
  if (x > 10.1f) return 0;
  const float t = Div(2.0f, 2.0f + x);
  float p = -0.0744413286f;
  p = Fma(p, t, 0.351375431f);
  p = Fma(p, t, -0.611250877f);
  p = Fma(p, t, 0.406745762f);
  p = Fma(p, t, -0.108435161f);
  p = Fma(p, t, 0.235599861f);
  p = Fma(p, t, 0.234760061f);
  p = Fma(p, t, 0.283655763f);
  p = Fma(p, t, 0.281978786f);
  p = Fma(p, t, 3.76650746e-06f);
  const float square = x * x;
  const float rest = Fma(x, x, -square);
  return Fma(-rest, p, p) * Exp(-square);
}

GPU_DEVICE float Erf(float x) {
  const float size = Abs(x);
  if (!(size > 1.0f)) return math::ErfOfSmall(x);
  return CopySign(1.0f - ErfcOfLarge(size), x);
}

GPU_DEVICE float Erfc(float x) {
  if (!(x > 0.5f)) return x < -1.0f ? 2.0f - ErfcOfLarge(-x) : 1.0f - math::ErfOfSmall(x);
  return ErfcOfLarge(x);
}

}  // namespace floe::cuda
