// What the routes of a convolution cost: estimates from constants of the instruction set in use,
// committed and never measured at load, so that the same file gives the same choice everywhere.
#pragma once

#include <optional>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/kernel.h"
#include "model/ops/conv_nd.h"

namespace floe::kernels {

// Figures of one core.
struct ConvRates {
  double macs_per_us;           // multiply-adds of the packed GEMM over long sums
  double fft_macs_per_us;       // of its short sums over spectra
  double point_us;              // a point of a transform of one block of channels
  double cached_bytes;          // a layer's weights up to which they stay in a cache between runs
  double cached_bytes_per_us;   // that are read from there
  double bytes_per_us;          // that are read from memory
  double winograd_macs_per_us;  // of the sums over channels between Winograd's transforms
  double winograd_tile_us;      // a tile, whatever its channels
  double winograd_point_us;     // a point of its transforms of one vector of channels
};
const ConvRates& RatesOfIsa();

// Microseconds for one image of a convolution by transforms: `product` takes the sums between them,
// which read `weight_bytes`.
double TransformedConvCost(double transforms, double product, double weight_bytes,
                           const ConvOptions& options);

// Microseconds for one image by the packed GEMM; unset where the shapes are not known when the
// kernel is made.
std::optional<double> DirectConvCost(const KernelArgs& args, const ops::ConvNd& window);

// The same by the kernels of small groups (depthwise.h).
std::optional<double> SmallGroupsCost(const KernelArgs& args, const ops::ConvNd& window);

// Microseconds for each pixel of a gradient whose filter of one group is constant, by its phases or
// through columns, and how many pixels one image has, where that is known.
struct GradientCosts {
  double phases = 0, columns = 0;
  std::optional<double> pixels;
  std::optional<double> Of(double pixel) const {
    return pixels.has_value() ? std::optional(pixel * *pixels) : std::nullopt;
  }
};
GradientCosts CostsOfGradient(const KernelArgs& args, const GemmKernels& kernels);

}  // namespace floe::kernels
