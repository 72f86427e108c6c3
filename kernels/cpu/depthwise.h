// The inner loops of depthwise convolution.
#pragma once

#include <cstdint>

#include "model/epilogue.h"

namespace floe::kernels {

// An NHWC image and a filter [kernel_h, kernel_w, channels]: output channel c is made from input
// channel c alone.
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
};

// Computes output row y into out[out_w][channels]. Taps outside the image are left out; the others
// are added in the filter's order. Never allocates, never fails, any thread.
using DepthwiseRowFunction = void (*)(const DepthwiseTask& task, int64_t y, float* out);
DepthwiseRowFunction PickDepthwiseRow();  // for this CPU; call once, when a kernel is made

}  // namespace floe::kernels
