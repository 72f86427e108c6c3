// Functions of float32 that few kernels need, with the same bits on both sides.
#pragma once

#include "kernels/cuda/math.h"

namespace floe::cuda::functions {

GPU_DEVICE float Floor(float x) {
#if defined(__CUDA_ARCH__)
  return floorf(x);
#else
  return __builtin_floorf(x);
#endif
}
GPU_DEVICE float Ceil(float x) { return -Floor(-x); }
// Half to even.
GPU_DEVICE float RoundToEven(float x) {
  const float size = Abs(x), magic = 8388608.0f;  // 2^23: a sum with it has no fraction
  return size < magic ? CopySign(size + magic - magic, x) : x;
}

// x times the normal distribution's integral from -infinity to x. Below -3 the relative error grows
// up to 1e-5, with the rounding of the square.
GPU_DEVICE float Gelu(float x) { return 0.5f * x * Erfc(-0.707106781f * x); }
// x/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
GPU_DEVICE float GeluTanh(float x) {
  return x * Sigmoid(x * Fma(x * x, 0.0713548163f, 1.59576912f));
}
// x * tanh(softplus(x)), which is x * w / (w + 2) for w = e^x * (e^x + 2). From 20 on it is x.
GPU_DEVICE float Mish(float x) {
  const float e = Exp(x > 20.0f ? 20.0f : x), w = e * (e + 2.0f);
  return x * Div(w, w + 2.0f);
}
GPU_DEVICE float Selu(float x) {
  return x < 0 ? 1.7580993408473769f * Expm1(x) : 1.0507009873554805f * x;
}

GPU_DEVICE uint64_t BitsOfDouble(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}
GPU_DEVICE double DoubleOfBits(uint64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

// log of a positive float in float64, to 1e-15: 2^n m with m in [sqrt(1/2), sqrt(2)), and the
// series of 2 artanh((m - 1) / (m + 1)).
GPU_DEVICE double LogInDouble(double x) {
  const uint64_t bits = BitsOfDouble(x) - 0x3fe6a09e667f3bcdu;
  const double n = static_cast<double>(static_cast<int64_t>(bits) >> 52);
  const double m = DoubleOfBits((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 1.0 / 21;
  GPU_UNROLL
  for (int k = 19; k > 0; k -= 2) series = series * square + 1.0 / k;
  return n * 0.69314718055994531 + 2 * s * series;
}
// e^x for |x| < 700, to 1e-15.
GPU_DEVICE double ExpInDouble(double x) {
  const double magic = 6755399441055744.0;  // 1.5 * 2^52
  const double n = x * 1.4426950408889634 + magic - magic;
  const double r = x - n * 0.69314718055994531;
  double series = 1;
  GPU_UNROLL
  for (int k = 14; k > 0; --k) series = series * r / k + 1;
  return series * DoubleOfBits(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

// C's powf.
GPU_DEVICE float Pow(float a, float b) {
  if (b == 0 || a == 1.0f) return 1.0f;
  if (IsNaN(a) || IsNaN(b)) return NaN();
  const float size = Abs(a);
  const bool whole = Floor(b) == b, odd = whole && Floor(0.5f * b) != 0.5f * b;
  const float sign = odd && (BitsOfFloat(a) >> 31) != 0 ? -1.0f : 1.0f;
  const bool large = b > 0;
  if (size == 0) return large ? sign * 0.0f : sign * Infinity();
  if (Abs(b) == Infinity()) return size == 1.0f ? 1.0f : (size > 1.0f) == large ? Infinity() : 0.0f;
  if (size == Infinity()) return large ? sign * Infinity() : sign * 0.0f;
  if (a < 0 && !whole) return NaN();
  const double power = LogInDouble(static_cast<double>(size)) * static_cast<double>(b);
  if (power > 89.0) return sign * Infinity();
  if (power < -104.0) return sign * 0.0f;
  return sign * static_cast<float>(ExpInDouble(power));
}

}  // namespace floe::cuda::functions
