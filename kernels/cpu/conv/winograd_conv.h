// Convolutions of small filters with stride 1 by Winograd's minimal filtering, where the shapes and
// the weights are known when the kernel is made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/winograd_transforms.h"

namespace floe::kernels {

// A tile of pixels gives a tile of the result, and tiles do not share anything, so the bits of an
// image depend on that image alone. The error of a result is relative to the largest values of its
// tile. A tile that holds an infinity or NaN, or whose values differ by more than kWinogradRange
// from window to window, is computed by plain sums.

// The most by which the largest value under the filter may be below the tile's largest. Windows of
// zeros only are no matter: their results are exact.
inline constexpr double kWinogradRange = 64;
// A tile whose largest value is outside, other than 0, is computed by plain sums. Weights whose
// largest value is outside are not transformed.
inline constexpr double kWinogradLargest = 0x1p60, kWinogradSmallest = 0x1p-60;
inline constexpr double kWinogradLargestWeight = 0x1p40, kWinogradSmallestWeight = 0x1p-40;
// Of one layer's transformed weights.
inline constexpr int64_t kWinogradWeightBytes = int64_t{256} << 20;

struct WinogradPlan {
  WinogradForm form;
  int64_t channels = 0, columns = 0;  // of the filter
  double cost_us = 0;                 // for one row of a batch, some rows together

  std::string Name() const;     // "winograd4x4"
  int64_t WeightBytes() const;  // transformed
};

// The forms that are open to a convolution; none where types, shapes or weights are not known or
// beyond the bounds above, and for strides, dilations and groups.
std::vector<WinogradPlan> PlanWinogradConv(const KernelArgs& args, const ops::ConvNd& window);

// RESOURCE_EXHAUSTED where the memory budget has no room for the transformed weights.
absl::StatusOr<std::unique_ptr<Kernel>> MakeWinogradConv(const KernelArgs& args,
                                                         const ops::ConvNd& window,
                                                         const Epilogue& epilogue,
                                                         const WinogradPlan& plan);

}  // namespace floe::kernels
