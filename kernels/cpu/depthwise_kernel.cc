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

// The loops over sums must vanish, so that these stay in registers.
#define FLOE_UNROLL _Pragma("GCC unroll 8")

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

// Neighbours in a row that see the same taps.
struct Pixels {
  TapRange rows, columns;
  const float* first;  // input under tap (0, 0) of the first, channel 0; may lie outside the image
  float* out;
};

// kVectors vectors of channels from c on; `partial` != 0: one vector with that many channels. A
// tap's weights are read once for all pixels.
template <int kPixels, int kVectors>
HWY_INLINE void Channels(const DepthwiseTask& task, const Pixels& at, int64_t c, size_t partial) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = task.stride_w * task.channels;
  const auto load = [&](const float* p) HWY_ATTR {
    return partial == 0 ? hn::LoadU(d, p) : LoadPartial(d, p, partial);
  };
  V sum[kPixels][kVectors];
  FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
    FLOE_UNROLL for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(d);
  }
  for (int64_t ky = at.rows.begin; ky < at.rows.end; ++ky) {
    for (int64_t kx = at.columns.begin; kx < at.columns.end; ++kx) {
      const float* in =
          at.first + (ky * task.dilation_h * task.in_w + kx * task.dilation_w) * task.channels + c;
      const float* weights = task.filter + (ky * task.kernel_w + kx) * task.channels + c;
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        const V weight = load(weights + v * lanes);
        FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
          sum[p][v] = hn::MulAdd(load(in + p * step + v * lanes), weight, sum[p][v]);
        }
      }
    }
  }
  FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
    const V bias = task.bias == nullptr ? hn::Zero(d) : load(task.bias + c + v * lanes);
    FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
      V result = sum[p][v];
      if (task.bias != nullptr) result = hn::Add(result, bias);
      result = ActivateCheaply(d, task.epilogue.activation, task.epilogue.alpha, result);
      float* to = at.out + p * task.channels + c + v * lanes;
      if (partial == 0) {
        hn::StoreU(result, d, to);
      } else {
        StorePartial(d, result, to, partial);
      }
    }
  }
}

template <int kPixels>
void AllChannels(const DepthwiseTask& task, const Pixels& at) {
  // Fewer sums than these would wait for each other.
  constexpr int kVectors = kPixels == 1 ? 4 : kPixels <= 4 ? 2 : 1;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + kVectors * lanes <= task.channels; c += kVectors * lanes)
    Channels<kPixels, kVectors>(task, at, c, 0);
  for (; c + lanes <= task.channels; c += lanes) Channels<kPixels, 1>(task, at, c, 0);
  if (c < task.channels) Channels<kPixels, 1>(task, at, c, static_cast<size_t>(task.channels - c));
  if (!IsCheap(task.epilogue.activation)) {
    ActivateInPlace(task.epilogue.activation, task.epilogue.alpha,
                    {at.out, 1, 0, static_cast<size_t>(kPixels * task.channels)});
  }
}

constexpr void (*kByPixels[])(const DepthwiseTask&, const Pixels&) = {
    nullptr,        AllChannels<1>, AllChannels<2>, AllChannels<3>, AllChannels<4>,
    AllChannels<5>, AllChannels<6>, AllChannels<7>, AllChannels<8>};
constexpr int64_t kMostPixels = 8;

void DepthwiseRow(const DepthwiseTask& task, int64_t y, float* out) {
  const int64_t first_y = y * task.stride_h - task.pad_top;
  const TapRange rows(first_y, task.in_h, task.kernel_h, task.dilation_h);
  const auto first_x = [&](int64_t x) { return x * task.stride_w - task.pad_left; };
  const auto run = [&](int64_t x, int64_t count) {
    const TapRange columns(first_x(x), task.in_w, task.kernel_w, task.dilation_w);
    kByPixels[count](
        task, {rows, columns, task.image + (first_y * task.in_w + first_x(x)) * task.channels,
               out + x * task.channels});
  };
  // Outputs [begin, end) see all taps of a row.
  const int64_t span = (task.kernel_w - 1) * task.dilation_w + 1, last = task.in_w - span;
  const int64_t begin = HWY_MIN(task.out_w, (task.pad_left + task.stride_w - 1) / task.stride_w);
  const int64_t end =
      last < 0 ? begin
               : HWY_MAX(begin, HWY_MIN(task.out_w, (last + task.pad_left) / task.stride_w + 1));
  for (int64_t x = 0; x < begin; ++x) run(x, 1);
  int64_t x = begin;
  for (int64_t tiles = (end - begin + kMostPixels - 1) / kMostPixels; tiles > 0; --tiles) {
    const int64_t count = (end - x + tiles - 1) / tiles;
    run(x, count);
    x += count;
  }
  for (; x < task.out_w; ++x) run(x, 1);
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
