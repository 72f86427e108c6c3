// Real Fourier transforms of many channels at once, for convolutions: a block of 2 * lanes channels
// is one complex transform, its first half as the real and its second half as the imaginary part.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "base/aligned_buffer.h"

namespace floe::kernels {

inline constexpr int kMostFftPoints = 256;
inline constexpr int kMostFftBlock = 32;  // channels

// Numbers of points that there are, ascending, all even.
absl::Span<const int> FftPoints();

// The spectrum of a block of data is planes() planes. Frequency 0 and points / 2 have one plane
// each, the real part. Every other has three, so that a complex product is three real ones (Gauss):
// (re, im, re + im) of the data times (d - c, c + d, 2c) of the weights c + id gives k1, k2, k3,
// and the product is (k3 / 2 - k2) + i (k3 / 2 + k1).
constexpr int64_t FftPlanes(int64_t points) { return 3 * (points / 2 - 1) + 2; }

// Weights have two planes of such a frequency, d - c and c + d: 2c is their difference. Its product
// comes last, when both are in the caches.
constexpr int64_t FftWeightPlanes(int64_t points) { return points; }

// The weights of a plane of the data: plane `b`, less plane `minus` unless that is negative.
struct FftFactor {
  int64_t b, minus;
};
constexpr FftFactor FactorOf(int64_t plane, int64_t points) {
  if (plane == 0) return {0, -1};
  if (plane == FftPlanes(points) - 1) return {points - 1, -1};
  const int64_t first = 2 * ((plane - 1) / 3) + 1;
  switch ((plane - 1) % 3) {
    case 0:
      return {first, -1};
    case 1:
      return {first + 1, -1};
    default:
      return {first + 1, first};
  }
}

// `count` rows of a block: row n is at base + n * stride.
struct FftRows {
  const float* base;
  int64_t stride;
};

// Where a block of a result goes: values [0, count), each with `bias` added (2 * lanes floats).
struct FftResult {
  float* base;
  int64_t stride;
  int64_t count;
  int64_t channels;  // of the block; the others are not written
  const float* bias;
  bool relu;
};

class TileFft;

// The functions of one instruction set. Never allocate, never fail, any thread.
struct FftKernels {
  int64_t lanes;
  // Twice the spectrum of points() rows of a whole block; plane p goes to to + p * plane_stride.
  void (*forward)(const TileFft& fft, const FftRows& rows, float* to, int64_t plane_stride);
  // The conjugate spectrum of weights, scaled so that `inverse` needs no factor. `width`: floats of
  // a plane that are stored, lanes or 2 * lanes. `to` and plane_stride are of whole vectors.
  void (*weights)(const TileFft& fft, const FftRows& rows, float* to, int64_t plane_stride,
                  int64_t width);
  void (*inverse)(const TileFft& fft, const float* from, int64_t plane_stride,
                  const FftResult& result);
  // The largest of the absolute values as the bits of a float; NaN and infinities are above all
  // others.
  uint32_t (*largest)(const float* values, int64_t count);

  int64_t block() const { return 2 * lanes; }
};

// For this CPU; call once, when a kernel is made.
FftKernels PickFft();

// A transform of so many points, of FftPoints(), in two passes. Threading: immutable.
class TileFft {
 public:
  explicit TileFft(int points);
  int64_t points() const { return points_; }
  int64_t planes() const { return FftPlanes(points_); }
  int first() const { return first_; }
  int second() const { return second_; }
  // cos, sin of 2 pi n k / points, for n below second() and k below first().
  const float* factors() const { return reinterpret_cast<const float*>(factors_.data()); }

 private:
  int points_, first_, second_;
  AlignedBuffer factors_;
};

}  // namespace floe::kernels
