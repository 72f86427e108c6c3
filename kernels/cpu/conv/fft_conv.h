// Long convolutions along one dim by overlap-save Fourier transforms, where the input's length and
// the weights are known when the kernel is made.
#pragma once

#include <memory>
#include <optional>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/fft_transforms.h"

namespace floe::kernels {

// A tile is points() neighbouring rows of one image, which give points() - taps + 1 rows of the
// result. Tiles do not share anything, so the bits of an image depend on that image alone. The
// error of a tile is relative to its largest values. A tile that holds an infinity or NaN, or whose
// values differ by more than kFftRange from window to window, is computed by the packed GEMM.

// The most by which the largest value under one tap window may be below the tile's largest.
// Windows of zeros only are no matter: their results are exact.
inline constexpr double kFftRange = 64;
// A tile whose largest value is outside, other than 0, is computed by the packed GEMM. Weights
// whose largest value is outside get no transforms.
inline constexpr double kFftLargest = 0x1p60, kFftSmallest = 0x1p-60;
inline constexpr double kFftLargestWeight = 0x1p40, kFftSmallestWeight = 0x1p-40;

// A convolution as one of stride 1 over rows of `width` floats: s neighbouring input rows are one
// row where the stride is s, and d interleaved sequences are independent where the dilation is d.
struct FftLine {
  int64_t taps = 0;      // rows under the filter
  int64_t width = 0;     // floats of a row
  int64_t columns = 0;   // output channels
  bool along_h = false;  // the dim that is not 1
  int64_t out = 0;       // rows of the result
  int64_t dilation = 1;
  int64_t weights = 0;  // floats of the filter

  // Tiles of an image, by a transform of so many points.
  int64_t Tiles(int64_t points) const;
};
// Unset where transforms are not open to a convolution: types, shapes or weights that are not
// known, two dims, few taps, weights beyond the bounds above.
std::optional<FftLine> FftLineOf(const KernelArgs& args, const ops::ConvNd& window);

struct FftConvPlan : FftLine {
  int points = 0;
  double cost_us = 0;  // for one row of a batch, some rows together

  int64_t tile() const { return points - taps + 1; }  // rows of the result
};

// Unset where FftLineOf is, or ConvOptions::fft_growth leaves no points.
std::optional<FftConvPlan> PlanFftConv(const KernelArgs& args, const ops::ConvNd& window);

// RESOURCE_EXHAUSTED where the memory budget has no room for the transformed weights.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFftConv(const KernelArgs& args,
                                                    const ops::ConvNd& window,
                                                    const Epilogue& epilogue,
                                                    const FftConvPlan& plan);

}  // namespace floe::kernels
