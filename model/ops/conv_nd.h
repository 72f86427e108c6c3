// Windows of convolutions over two or three spatial dims, for inference and kernels.
#pragma once

#include "model/op_def.h"
#include "model/ops/window.h"

namespace floe::ops {

// One entry for each spatial dim, outermost first.
struct ConvNd {
  int spatial = 2;
  bool channels_first = false;
  int64_t stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1};
  WindowPads pads[3];

  int channel_axis() const { return channels_first ? 1 : spatial + 1; }
  int axis(int i) const { return i + (channels_first ? 2 : 1); }
  // Input elements a filter of `kernel` taps spans.
  int64_t Span(int i, int64_t kernel) const { return WindowSpan(kernel, dilation[i]); }
};

// From attributes strides, dilations, padding, explicit_paddings and data_format; numbers above
// kMaxWindowNumber are refused.
absl::StatusOr<ConvNd> ConvNdOf(const Attrs& attrs, int spatial);

// Rows of input 0 stay rows. Input `residual`, where it is not -1, has the output's shape and rows;
// the other inputs must be constant.
RowMark ConvRows(const RowContext& context, int residual);

}  // namespace floe::ops
