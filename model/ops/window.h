// Sliding windows of pooling ops.
#pragma once

#include "absl/container/inlined_vector.h"
#include "model/op_def.h"

namespace floe::ops {

struct WindowPads {
  bool same = false;  // TensorFlow's SAME: half of what is missing before, the rest after
  int64_t low = 0, high = 0;
};

// Sizes, strides, dilations and paddings are 32-bit numbers in TensorFlow's kernels. With more,
// what is computed of them would not fit 64 bits.
inline constexpr int64_t kMaxWindowNumber = INT32_MAX;

// INVALID_ARGUMENT when a number of the attribute `name` is below `least` or above
// kMaxWindowNumber.
absl::Status CheckWindowNumbers(const char* name, absl::Span<const int64_t> values, int64_t least);

// Input elements that `kernel` taps span, or kMaxWindowNumber + 1, which WindowOutput refuses, when
// they are more.
int64_t WindowSpan(int64_t kernel, int64_t dilation);

// One entry for each spatial dim, outermost first.
struct Window {
  bool channels_first = false;
  absl::InlinedVector<int64_t, 3> kernel, stride;
  absl::InlinedVector<WindowPads, 3> pads;
  int axis(int spatial) const { return spatial + (channels_first ? 2 : 1); }
};

// UNIMPLEMENTED for channels in front. For kernels: the pass channels_last leaves them none.
absl::Status CheckChannelsLast(bool channels_first);

// From ksize, strides, padding, explicit_paddings and data_format. UNIMPLEMENTED for windows over
// channels.
absl::StatusOr<Window> WindowOf(const Attrs& attrs, int spatial);

// Output size along one dim; unknown when `in` is not a number.
absl::StatusOr<Dim> WindowOutput(Dim in, int64_t kernel, int64_t stride, const WindowPads& pads);

// Elements of padding before the input. Three-dimensional forward ops of TensorFlow centre SAME
// windows also where the stride leaves elements out (`centred`): the first window begins inside
// the input then, and the padding is negative.
int64_t PadLow(int64_t in, int64_t out, int64_t kernel, int64_t stride, const WindowPads& pads,
               bool centred = false);

}  // namespace floe::ops
