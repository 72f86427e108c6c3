// The inner loops of depthwise convolution, and of convolution in small groups.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/kernel.h"
#include "model/epilogue.h"
#include "model/ops/conv_nd.h"

namespace floe::kernels {

// An NHWC image and a filter [kernel_h, kernel_w, group, channels]: output channel c is made from
// the `group` input channels of its group, which are neighbours: with 1 from input channel c alone.
struct DepthwiseTask {
  const float* image;
  const float* filter;
  const float* bias;  // null: none
  int64_t in_h, in_w, channels;
  int64_t kernel_h, kernel_w;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_left;
  int64_t out_w;
  Epilogue epilogue;
  int64_t group = 1;  // if not 1, a power of two, at most a vector's lanes, and `channels` whole
                      // vectors
};

// Computes output row y into out[out_w][channels]. Taps outside the image are left out; the others
// are added in the filter's order. Never allocates, never fails, any thread.
using DepthwiseRowFunction = void (*)(const DepthwiseTask& task, int64_t y, float* out);
DepthwiseRowFunction PickDepthwiseRow();  // for this CPU; call once, when a kernel is made

// Whether that computes a Conv2D of as many outputs as inputs, in groups, without a residual.
bool FitsSmallGroups(const KernelArgs& args, const ops::ConvNd& window, const Epilogue& epilogue);
std::unique_ptr<Kernel> MakeSmallGroups(const KernelArgs& args, const ops::ConvNd& window,
                                        const Epilogue& epilogue);

}  // namespace floe::kernels
