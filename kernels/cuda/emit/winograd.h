// Convolutions of 3x3 taps by Winograd's minimal filtering (kernels/cuda/winograd.cuh).
#pragma once

#include <optional>
#include <vector>

#include "kernels/candidates.h"
#include "kernels/cuda/emit/conv.h"

namespace floe::cuda {

// Microseconds for one image by plain products on a GPU; unset where the shapes are not known. By a
// fixed model of one device, so that every device and batch has the same route.
std::optional<double> PlainConvCost(const KernelArgs& args, const ops::ConvNd& conv);

// The tiles that are open to a Conv2D. They need what those of the CPU need, and channels in fours.
std::vector<Candidate> WinogradCandidates(const KernelArgs& args, const ops::ConvNd& conv);

}  // namespace floe::cuda
