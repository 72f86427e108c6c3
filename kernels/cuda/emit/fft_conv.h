// Long convolutions along one dim by overlap-save Fourier transforms, as on the CPU
// (kernels/cpu/conv/fft_conv.h): the same tiles, the same bounds, and tiles beyond them computed
// directly. Each tile is alone, so the bits of an image depend on that image alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/conv/fft_conv.h"

namespace floe::cuda {

struct FftDevicePlan : kernels::FftLine {
  int first = 0, second = 0;  // of the two passes; their product is the number of points
  int64_t together = 0;       // tiles that are in memory at once, whatever the batch is
  // Time of one image by this route and by the direct one, from constants for all devices alike.
  double cost_us = 0, direct_cost_us = 0;

  int64_t points() const { return int64_t{first} * second; }
  int64_t tile() const { return points() - taps + 1; }
};

// By every number of points that the line fits.
std::vector<FftDevicePlan> FftPlansOnDevice(const kernels::FftLine& line);

// The cheapest. Unset where transforms are not open to a convolution (FftLineOf), or `fft: off` and
// fft_growth leave none.
std::optional<FftDevicePlan> PlanFftOnDevice(const KernelArgs& args, const ops::ConvNd& conv);

// RESOURCE_EXHAUSTED where the memory budget has no room for the transformed weights.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFftOnDevice(const KernelArgs& args,
                                                        const ops::ConvNd& conv,
                                                        const FftDevicePlan& plan);

}  // namespace floe::cuda
