#include "kernels/cpu/conv/fft_transforms.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/fft_transforms.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/conv/fft_codelets-inl.h"
#include "kernels/cpu/gemm/activation-inl.h"
#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FftD()));
constexpr int64_t kBlock = 2 * kLanes;

HWY_INLINE Complex LoadPoint(const float* p) {
  return {hn::LoadU(FftD(), p), hn::LoadU(FftD(), p + kLanes)};
}
HWY_INLINE void StorePoint(const Complex& x, float* p) {
  hn::StoreU(x.r, FftD(), p);
  hn::StoreU(x.i, FftD(), p + kLanes);
}

// Transforms of R points, `others` apart, and the factors behind them. work may be rows.base.
template <int R>
HWY_NOINLINE void FirstPass(const TileFft& fft, const FftRows& rows, float* work) {
  const int others = fft.second();
  const float* factor = fft.factors();
  for (int n = 0; n < others; ++n, factor += 2 * R) {
    Complex x[R];
    FLOE_UNROLL for (int j = 0; j < R; ++j) {
      x[j] = LoadPoint(rows.base + (j * others + n) * rows.stride);
    }
    Dft<R>(x);
    StorePoint(x[0], work + n * kBlock);
    FLOE_UNROLL for (int j = 1; j < R; ++j) {
      const Complex turned =
          Turn(x[j], hn::Set(FftD(), factor[2 * j]), hn::Set(FftD(), factor[2 * j + 1]));
      StorePoint(turned, work + (j * others + n) * kBlock);
    }
  }
}

// Transforms of R neighbours; result k is stored at to + k * kBlock.
template <int R>
HWY_NOINLINE void SecondPass(const TileFft& fft, const float* work, float* to) {
  const int others = fft.first();
  for (int k = 0; k < others; ++k) {
    Complex x[R];
    FLOE_UNROLL for (int j = 0; j < R; ++j) x[j] = LoadPoint(work + (k * R + j) * kBlock);
    Dft<R>(x);
    FLOE_UNROLL for (int j = 0; j < R; ++j) StorePoint(x[j], to + (k + j * others) * kBlock);
  }
}

// The same for a result: real and imaginary parts are swapped, what lies behind it is left out.
template <int R>
HWY_NOINLINE void LastPass(const TileFft& fft, const float* work, const FftResult& result) {
  const FftD d;
  const int others = fft.first();
  const FftV bias_a = hn::LoadU(d, result.bias), bias_b = hn::LoadU(d, result.bias + kLanes);
  for (int k = 0; k < others; ++k) {
    Complex x[R];
    FLOE_UNROLL for (int j = 0; j < R; ++j) x[j] = LoadPoint(work + (k * R + j) * kBlock);
    Dft<R>(x);
    FLOE_UNROLL for (int j = 0; j < R; ++j) {
      const int64_t n = k + j * others;
      if (n < result.count) {
        FftV a = hn::Add(x[j].i, bias_a), b = hn::Add(x[j].r, bias_b);
        if (result.relu) {
          a = Relu(d, a);
          b = Relu(d, b);
        }
        StorePoint({a, b}, result.base + n * result.stride);
      }
    }
  }
}

using First = void (*)(const TileFft&, const FftRows&, float*);
using Second = void (*)(const TileFft&, const float*, float*);
using Last = void (*)(const TileFft&, const float*, const FftResult&);

First FirstOf(int radix) {
  switch (radix) {
    case 4:
      return FirstPass<4>;
    case 6:
      return FirstPass<6>;
    case 8:
      return FirstPass<8>;
    case 10:
      return FirstPass<10>;
    case 12:
      return FirstPass<12>;
    default:
      return FirstPass<16>;
  }
}

Second SecondOf(int radix) {
  switch (radix) {
    case 4:
      return SecondPass<4>;
    case 5:
      return SecondPass<5>;
    case 6:
      return SecondPass<6>;
    case 8:
      return SecondPass<8>;
    case 10:
      return SecondPass<10>;
    case 12:
      return SecondPass<12>;
    case 16:
      return SecondPass<16>;
    default:
      return SecondPass<20>;
  }
}

Last LastOf(int radix) {
  switch (radix) {
    case 4:
      return LastPass<4>;
    case 5:
      return LastPass<5>;
    case 6:
      return LastPass<6>;
    case 8:
      return LastPass<8>;
    case 10:
      return LastPass<10>;
    case 12:
      return LastPass<12>;
    case 16:
      return LastPass<16>;
    default:
      return LastPass<20>;
  }
}

// Room for the points of one block. Two of them must not begin at the same line of a page.
struct Work {
  HWY_ALIGN float first[kMostFftPoints * kBlock];
  HWY_ALIGN float skew[13 * 16];
  HWY_ALIGN float second[kMostFftPoints * kBlock];
};

void Transform(const TileFft& fft, const FftRows& rows, Work* work) {
  FirstOf(fft.first())(fft, rows, work->first);
  SecondOf(fft.second())(fft, work->first, work->second);
}

// Twice the spectra at frequency f of the two real halves, which are apart by symmetry.
struct Halves {
  Complex a, b;
};
HWY_INLINE Halves Separate(const Complex& z, const Complex& mirror) {
  return {{hn::Add(z.r, mirror.r), hn::Sub(z.i, mirror.i)},
          {hn::Add(z.i, mirror.i), hn::Sub(mirror.r, z.r)}};
}

void Forward(const TileFft& fft, const FftRows& rows, float* to, int64_t plane_stride) {
  Work work;
  Transform(fft, rows, &work);
  const int64_t points = fft.points();
  const Complex zero = LoadPoint(work.second);
  StorePoint(zero + zero, to);
  to += plane_stride;
  for (int64_t f = 1; f < points / 2; ++f) {
    const Halves h = Separate(LoadPoint(work.second + f * kBlock),
                              LoadPoint(work.second + (points - f) * kBlock));
    StorePoint({h.a.r, h.b.r}, to);
    StorePoint({h.a.i, h.b.i}, to + plane_stride);
    StorePoint({hn::Add(h.a.r, h.a.i), hn::Add(h.b.r, h.b.i)}, to + 2 * plane_stride);
    to += 3 * plane_stride;
  }
  const Complex middle = LoadPoint(work.second + points / 2 * kBlock);
  StorePoint(middle + middle, to);
}

// Past the caches: nobody reads the weights soon, and planes are far apart.
HWY_INLINE void StoreWidth(FftV a, FftV b, float* to, int64_t width) {
  hn::Stream(a, FftD(), to);
  if (width > kLanes) hn::Stream(b, FftD(), to + kLanes);
}

void Weights(const TileFft& fft, const FftRows& rows, float* to, int64_t plane_stride,
             int64_t width) {
  Work work;
  Transform(fft, rows, &work);
  const int64_t points = fft.points();
  // Halves has twice the spectrum, and so has the data's; the inverse is not divided by points.
  const float scale = 0.25f / static_cast<float>(points);
  const Complex zero = Scale(LoadPoint(work.second), 2 * scale);
  StoreWidth(zero.r, zero.i, to, width);
  to += plane_stride;
  for (int64_t f = 1; f < points / 2; ++f) {
    const Halves h = Separate(Scale(LoadPoint(work.second + f * kBlock), scale),
                              Scale(LoadPoint(work.second + (points - f) * kBlock), scale));
    // Conjugate: d is -im.
    StoreWidth(hn::Neg(hn::Add(h.a.i, h.a.r)), hn::Neg(hn::Add(h.b.i, h.b.r)), to, width);
    to += plane_stride;
    StoreWidth(hn::Sub(h.a.r, h.a.i), hn::Sub(h.b.r, h.b.i), to, width);
    to += plane_stride;
  }
  const Complex middle = Scale(LoadPoint(work.second + points / 2 * kBlock), 2 * scale);
  StoreWidth(middle.r, middle.i, to, width);
  hwy::FlushStream();
}

// The whole complex spectrum from the products. An inverse transform is a forward one between two
// swaps of real and imaginary part; the first swap is here. Channels that a block does not have
// would reach those in the same lanes: they become 0.
template <bool kWhole>
HWY_INLINE Complex LoadProduct(const float* p, hn::Mask<FftD> second_half) {
  Complex x = LoadPoint(p);
  if constexpr (!kWhole) x.i = hn::IfThenElseZero(second_half, x.i);
  return x;
}

template <bool kWhole>
void Gather(const TileFft& fft, const float* from, int64_t plane_stride, int64_t channels,
            float* work) {
  const int64_t points = fft.points();
  const auto has = hn::FirstN(FftD(), static_cast<size_t>(HWY_MAX(channels - kLanes, 0)));
  const auto half = hn::Set(FftD(), 0.5f);
  const Complex zero = LoadProduct<kWhole>(from, has);
  StorePoint({zero.i, zero.r}, work);
  from += plane_stride;
  for (int64_t f = 1; f < points / 2; ++f) {
    const Complex k1 = LoadProduct<kWhole>(from, has),
                  k2 = LoadProduct<kWhole>(from + plane_stride, has),
                  k3 = LoadProduct<kWhole>(from + 2 * plane_stride, has);
    from += 3 * plane_stride;
    const Complex re = {hn::MulSub(half, k3.r, k2.r), hn::MulSub(half, k3.i, k2.i)};
    const Complex im = {hn::MulAdd(half, k3.r, k1.r), hn::MulAdd(half, k3.i, k1.i)};
    StorePoint({hn::Add(im.r, re.i), hn::Sub(re.r, im.i)}, work + f * kBlock);
    StorePoint({hn::Sub(re.i, im.r), hn::Add(re.r, im.i)}, work + (points - f) * kBlock);
  }
  const Complex middle = LoadProduct<kWhole>(from, has);
  StorePoint({middle.i, middle.r}, work + points / 2 * kBlock);
}

void Inverse(const TileFft& fft, const float* from, int64_t plane_stride, const FftResult& result) {
  const FftD d;
  Work work;
  (result.channels == kBlock ? Gather<true> : Gather<false>)(fft, from, plane_stride,
                                                             result.channels, work.first);
  FirstOf(fft.first())(fft, {work.first, kBlock}, work.first);
  if (result.channels == kBlock) {
    LastOf(fft.second())(fft, work.first, result);
    return;
  }
  FftResult whole = result;
  whole.base = work.second;
  whole.stride = kBlock;
  LastOf(fft.second())(fft, work.first, whole);
  for (int64_t n = 0; n < result.count; ++n) {
    const float* part = work.second + n * kBlock;
    float* to = result.base + n * result.stride;
    int64_t left = result.channels;
    for (; left >= kLanes; left -= kLanes, part += kLanes, to += kLanes)
      hn::StoreU(hn::LoadU(d, part), d, to);
    if (left > 0) StorePartial(d, hn::LoadU(d, part), to, left);
  }
}

uint32_t Largest(const float* values, int64_t count) {
  const hn::RebindToSigned<FftD> bits;
  const auto mask = hn::Set(bits, 0x7FFFFFFF);
  auto most = hn::Zero(bits), other = hn::Zero(bits);
  const FftD d;
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    most = hn::Max(most, hn::And(mask, hn::BitCast(bits, hn::LoadU(d, values + i))));
    other = hn::Max(other, hn::And(mask, hn::BitCast(bits, hn::LoadU(d, values + i + kLanes))));
  }
  for (; i < count; i += kLanes) {
    const auto part =
        count - i >= kLanes ? hn::LoadU(d, values + i) : LoadPartial(d, values + i, count - i);
    most = hn::Max(most, hn::And(mask, hn::BitCast(bits, part)));
  }
  HWY_ALIGN int32_t lanes[kLanes];
  hn::Store(hn::Max(most, other), bits, lanes);
  int32_t largest = 0;
  for (int64_t k = 0; k < kLanes; ++k) largest = HWY_MAX(largest, lanes[k]);
  return static_cast<uint32_t>(largest);
}

int64_t FftLanes() { return kLanes; }

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {
namespace {

constexpr int kPoints[] = {16, 20,  24,  32,  36,  40,  48,  60,  64,  72, 80,
                           96, 100, 120, 128, 144, 160, 192, 200, 240, 256};
// Transforms of the first pass, by points; those of the second have the other factor.
constexpr int kFirst[] = {4, 4, 4, 4, 6, 8, 6, 12, 8, 12, 8, 8, 10, 10, 8, 12, 10, 12, 10, 12, 16};
static_assert(std::size(kPoints) == std::size(kFirst));

int FirstRadix(int points) {
  const size_t at = std::find(std::begin(kPoints), std::end(kPoints), points) - kPoints;
  return kFirst[std::min(at, std::size(kPoints) - 1)];
}

}  // namespace

HWY_EXPORT(FftLanes);
HWY_EXPORT(Forward);
HWY_EXPORT(Weights);
HWY_EXPORT(Inverse);
HWY_EXPORT(Largest);

absl::Span<const int> FftPoints() { return kPoints; }

FftKernels PickFft() {
  ChooseIsa();
  FftKernels kernels;
  kernels.lanes = HWY_DYNAMIC_DISPATCH(FftLanes)();
  kernels.forward = &HWY_DYNAMIC_DISPATCH(Forward);
  kernels.weights = &HWY_DYNAMIC_DISPATCH(Weights);
  kernels.inverse = &HWY_DYNAMIC_DISPATCH(Inverse);
  kernels.largest = &HWY_DYNAMIC_DISPATCH(Largest);
  return kernels;
}

TileFft::TileFft(int points)
    : points_(points),
      first_(FirstRadix(points)),
      second_(points / first_),
      factors_(2 * static_cast<size_t>(points) * sizeof(float)) {
  constexpr double kTwoPi = 6.283185307179586477;
  auto* to = reinterpret_cast<float*>(factors_.data());
  for (int n = 0; n < second_; ++n) {
    for (int k = 0; k < first_; ++k, to += 2) {
      const double angle = kTwoPi * (n * k % points) / points;
      to[0] = static_cast<float>(std::cos(angle));
      to[1] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace floe::kernels
#endif
