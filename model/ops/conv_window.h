// Strides, dilations and padding of two-dimensional convolutions, for inference and kernels.
#pragma once

#include "model/op_def.h"
#include "model/ops/window.h"

namespace floe::ops {

// Index 0 is height, 1 is width.
struct ConvWindow {
  bool channels_first = false;  // NCHW
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  WindowPads pads[2];

  int channel_axis() const { return channels_first ? 1 : 3; }
  int axis(int spatial) const { return spatial + (channels_first ? 2 : 1); }
  // Input elements a filter of `kernel` taps spans.
  int64_t Span(int spatial, int64_t kernel) const { return (kernel - 1) * dilation[spatial] + 1; }
};

// From attributes strides, dilations, padding, explicit_paddings and data_format.
absl::StatusOr<ConvWindow> ConvWindowOf(const Attrs& attrs);

}  // namespace floe::ops
