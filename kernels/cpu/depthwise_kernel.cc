#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise_kernel.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/activation-inl.h"
#include "kernels/cpu/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Taps [begin, end) of one filter dim that lie inside the image for an output whose first tap is at
// `first`.
struct TapRange {
  int64_t begin, end;
  TapRange(int64_t first, int64_t size, int64_t kernel, int64_t dilation) {
    begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
    end = size <= first ? 0 : (size - first + dilation - 1) / dilation;
    if (end > kernel) end = kernel;
  }
};

// The taps of one output pixel.
struct Pixel {
  TapRange rows, columns;
  const float* first;  // input under tap (0, 0), channel 0; may lie outside the image
};

// kVectors vectors of channels from c on; `partial` != 0: one vector with that many channels.
template <int kVectors>
HWY_INLINE void Channels(const DepthwiseTask& task, const Pixel& pixel, int64_t c, size_t partial,
                         float* out) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int64_t ky = pixel.rows.begin; ky < pixel.rows.end; ++ky) {
    for (int64_t kx = pixel.columns.begin; kx < pixel.columns.end; ++kx) {
      const float* in = pixel.first +
                        (ky * task.dilation_h * task.in_w + kx * task.dilation_w) * task.channels +
                        c;
      const float* weight = task.filter + (ky * task.kernel_w + kx) * task.channels + c;
      if (partial != 0) {
        sum[0] = hn::MulAdd(LoadPartial(d, in, partial), LoadPartial(d, weight, partial), sum[0]);
        continue;
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::MulAdd(hn::LoadU(d, in + v * lanes), hn::LoadU(d, weight + v * lanes), sum[v]);
      }
    }
  }
  if (partial != 0) {
    if (task.bias != nullptr) sum[0] = hn::Add(sum[0], LoadPartial(d, task.bias + c, partial));
    StorePartial(d, sum[0], out + c, partial);
    return;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    if (task.bias != nullptr) sum[v] = hn::Add(sum[v], hn::LoadU(d, task.bias + c + v * lanes));
    hn::StoreU(sum[v], d, out + c + v * lanes);
  }
}

void DepthwiseRow(const DepthwiseTask& task, int64_t y, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t first_y = y * task.stride_h - task.pad_top;
  for (int64_t x = 0; x < task.out_w; ++x, out += task.channels) {
    const int64_t first_x = x * task.stride_w - task.pad_left;
    const Pixel pixel{TapRange(first_y, task.in_h, task.kernel_h, task.dilation_h),
                      TapRange(first_x, task.in_w, task.kernel_w, task.dilation_w),
                      task.image + (first_y * task.in_w + first_x) * task.channels};
    int64_t c = 0;
    for (; c + 4 * lanes <= task.channels; c += 4 * lanes) Channels<4>(task, pixel, c, 0, out);
    for (; c + lanes <= task.channels; c += lanes) Channels<1>(task, pixel, c, 0, out);
    if (c < task.channels) Channels<1>(task, pixel, c, static_cast<size_t>(task.channels - c), out);
    ActivateInPlace(task.epilogue.activation, task.epilogue.alpha, out,
                    static_cast<size_t>(task.channels));
  }
}

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {

HWY_EXPORT(DepthwiseRow);

DepthwiseRowFunction PickDepthwiseRow() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(DepthwiseRow);
}

}  // namespace floe::kernels
#endif
