#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/depthwise_kernel.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/gemm/activation-inl.h"
#include "kernels/cpu/partial-inl.h"

// The loops over sums must vanish, so that these stay in registers.
#define FLOE_UNROLL _Pragma("GCC unroll 32")

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
  // Rounded up; divisions are slow, and mostly of nothing.
  static int64_t Steps(int64_t distance, int64_t dilation) {
    return dilation == 1 ? distance : (distance + dilation - 1) / dilation;
  }
  TapRange(int64_t first, int64_t size, int64_t kernel, int64_t dilation) {
    begin = first >= 0 ? 0 : Steps(-first, dilation);
    end = size <= first ? 0 : Steps(size - first, dilation);
    if (end > kernel) end = kernel;
  }
};

// Neighbours in a row that see the same taps.
struct Pixels {
  TapRange rows, columns;
  const float* first;  // input under tap (0, 0) of the first, channel 0; may lie outside the image
  float* out;
};

// A vector of channels, or `partial` of them where that is not 0.
HWY_INLINE V Load(const float* p, size_t partial) {
  return partial == 0 ? hn::LoadU(D(), p) : LoadPartial(D(), p, partial);
}

// Any filter. A tap's weights are read once for all pixels.
template <int kPixels, int kVectors>
HWY_INLINE void AddTaps(const DepthwiseTask& task, const Pixels& at, int64_t c, size_t partial,
                        V (&sum)[kPixels][kVectors]) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t step = task.stride_w * task.channels;
  for (int64_t ky = at.rows.begin; ky < at.rows.end; ++ky) {
    for (int64_t kx = at.columns.begin; kx < at.columns.end; ++kx) {
      const float* in =
          at.first + (ky * task.dilation_h * task.in_w + kx * task.dilation_w) * task.channels + c;
      const float* weights = task.filter + (ky * task.kernel_w + kx) * task.channels + c;
      FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
        const V weight = Load(weights + v * lanes, partial);
        FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
          sum[p][v] = hn::MulAdd(Load(in + p * step + v * lanes, partial), weight, sum[p][v]);
        }
      }
    }
  }
}

// The same for the usual filters, of which every pixel sees whole rows: a row's weights stay in
// registers, and each number of the input is read once for all pixels that see it.
template <int kPixels, int kWidth, int kStride>
HWY_INLINE void AddRows(const DepthwiseTask& task, const Pixels& at, int64_t c,
                        V (&sum)[kPixels][1]) {
  const D d;
  for (int64_t ky = at.rows.begin; ky < at.rows.end; ++ky) {
    const float* in = at.first + ky * task.dilation_h * task.in_w * task.channels + c;
    const float* weights = task.filter + ky * kWidth * task.channels + c;
    V w[kWidth];
    FLOE_UNROLL for (int kx = 0; kx < kWidth; ++kx) w[kx] =
        hn::LoadU(d, weights + kx * task.channels);
    FLOE_UNROLL for (int x = 0; x < (kPixels - 1) * kStride + kWidth; ++x) {
      const V v = hn::LoadU(d, in + x * task.channels);
      FLOE_UNROLL for (int kx = 0; kx < kWidth; ++kx) {
        const int p = (x - kx) / kStride;
        if (x >= kx && (x - kx) % kStride == 0 && p < kPixels)
          sum[p][0] = hn::MulAdd(v, w[kx], sum[p][0]);
      }
    }
  }
}

// The same for output channels that are made from all input channels of their group: of channel i
// of the groups every lane gets its own group's. kWidth 0: any filter, also at the edge.
template <int kPixels, int kWidth, int kStride>
HWY_INLINE void AddGroups(const DepthwiseTask& task, const Pixels& at, int64_t c,
                          V (&sum)[kPixels][1]) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto first = hn::And(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(-task.group)));
  const int64_t channels = task.channels, tap = task.group * channels;
  for (int64_t ky = at.rows.begin; ky < at.rows.end; ++ky) {
    const float* in = at.first + ky * task.dilation_h * task.in_w * channels + c;
    for (int64_t i = 0; i < task.group; ++i) {
      const auto lanes =
          hn::IndicesFromVec(d, hn::Add(first, hn::Set(di, static_cast<int32_t>(i))));
      const float* weights = task.filter + ky * task.kernel_w * tap + i * channels + c;
      if constexpr (kWidth == 0) {
        for (int64_t kx = at.columns.begin; kx < at.columns.end; ++kx) {
          const V weight = hn::LoadU(d, weights + kx * tap);
          FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
            const int64_t x = p * task.stride_w + kx * task.dilation_w;
            const V v = hn::TableLookupLanes(hn::LoadU(d, in + x * channels), lanes);
            sum[p][0] = hn::MulAdd(v, weight, sum[p][0]);
          }
        }
      } else {
        V w[kWidth];
        FLOE_UNROLL for (int kx = 0; kx < kWidth; ++kx) w[kx] = hn::LoadU(d, weights + kx * tap);
        FLOE_UNROLL for (int x = 0; x < (kPixels - 1) * kStride + kWidth; ++x) {
          const V v = hn::TableLookupLanes(hn::LoadU(d, in + x * channels), lanes);
          FLOE_UNROLL for (int kx = 0; kx < kWidth; ++kx) {
            const int p = (x - kx) / kStride;
            if (x >= kx && (x - kx) % kStride == 0 && p < kPixels)
              sum[p][0] = hn::MulAdd(v, w[kx], sum[p][0]);
          }
        }
      }
    }
  }
}

template <int kPixels, int kVectors, class F>
HWY_INLINE void ForSums(V (&sum)[kPixels][kVectors], const F& f) {
  FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
    FLOE_UNROLL for (int v = 0; v < kVectors; ++v) sum[p][v] = f(sum[p][v], v);
  }
}

// Bias, and the activation that is cheap enough to be done in registers.
template <int kPixels, int kVectors>
HWY_INLINE void Finish(const DepthwiseTask& task, int64_t c, size_t partial,
                       V (&sum)[kPixels][kVectors]) {
  const D d;
  if (task.bias != nullptr) {
    V bias[kVectors];
    FLOE_UNROLL for (int v = 0; v < kVectors; ++v) bias[v] =
        Load(task.bias + c + v * static_cast<int64_t>(hn::Lanes(d)), partial);
    ForSums(sum, [&](V x, int v) HWY_ATTR { return hn::Add(x, bias[v]); });
  }
  ActivateCheaply(d, task.epilogue.activation, task.epilogue.alpha, [&](const auto& f) HWY_ATTR {
    ForSums(sum, [&](V x, int) HWY_ATTR { return f(x); });
  });
}

// kVectors vectors of channels from c on; `partial` != 0: one vector with that many channels.
// kWidth != 0: the filter's width, with all taps of a row inside the image.
template <int kPixels, int kVectors, int kWidth, int kStride, bool kGroups>
HWY_INLINE void Channels(const DepthwiseTask& task, const Pixels& at, int64_t c, size_t partial) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kPixels][kVectors];
  FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
    FLOE_UNROLL for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(d);
  }
  if constexpr (kGroups) {
    AddGroups<kPixels, kWidth, kStride>(task, at, c, sum);
  } else if constexpr (kWidth == 0) {
    AddTaps(task, at, c, partial, sum);
  } else {
    AddRows<kPixels, kWidth, kStride>(task, at, c, sum);
  }
  Finish(task, c, partial, sum);
  float* const to = at.out + c;
  const int64_t channels = task.channels;
  FLOE_UNROLL for (int p = 0; p < kPixels; ++p) {
    FLOE_UNROLL for (int v = 0; v < kVectors; ++v) {
      if (partial == 0) {
        hn::StoreU(sum[p][v], d, to + p * channels + v * lanes);
      } else {
        StorePartial(d, sum[p][v], to + p * channels + v * lanes, partial);
      }
    }
  }
}

template <int kPixels, int kWidth, int kStride, bool kGroups>
void AllChannels(const DepthwiseTask& task, const Pixels& at) {
  // Fewer sums than these would wait for each other.
  constexpr int kVectors = kWidth != 0 || kGroups ? 1 : kPixels == 1 ? 4 : kPixels <= 4 ? 2 : 1;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + kVectors * lanes <= task.channels; c += kVectors * lanes)
    Channels<kPixels, kVectors, kWidth, kStride, kGroups>(task, at, c, 0);
  for (; c + lanes <= task.channels; c += lanes)
    Channels<kPixels, 1, kWidth, kStride, kGroups>(task, at, c, 0);
  if constexpr (!kGroups) {
    if (c < task.channels)
      Channels<kPixels, 1, 0, 0, false>(task, at, c, static_cast<size_t>(task.channels - c));
  }
  if (!IsCheap(task.epilogue.activation)) {
    ActivateInPlace(task.epilogue.activation, task.epilogue.alpha,
                    {at.out, 1, 0, static_cast<size_t>(kPixels * task.channels)});
  }
}

constexpr int64_t kMostPixels = 8;
using PixelsFunction = void (*)(const DepthwiseTask&, const Pixels&);
// By the number of pixels. kWidth 0: any filter, also at the edge of the image.
template <int kWidth, int kStride, bool kGroups>
constexpr PixelsFunction kByPixels[kMostPixels + 1] = {nullptr,
                                                       AllChannels<1, kWidth, kStride, kGroups>,
                                                       AllChannels<2, kWidth, kStride, kGroups>,
                                                       AllChannels<3, kWidth, kStride, kGroups>,
                                                       AllChannels<4, kWidth, kStride, kGroups>,
                                                       AllChannels<5, kWidth, kStride, kGroups>,
                                                       AllChannels<6, kWidth, kStride, kGroups>,
                                                       AllChannels<7, kWidth, kStride, kGroups>,
                                                       AllChannels<8, kWidth, kStride, kGroups>};

// For pixels that see all columns of the filter.
template <bool kGroups>
const PixelsFunction* InteriorFunctions(const DepthwiseTask& task) {
  if (task.dilation_w != 1) return kByPixels<0, 0, kGroups>;
  if (task.kernel_w == 3 && task.stride_w == 1) return kByPixels<3, 1, kGroups>;
  if (task.kernel_w == 3 && task.stride_w == 2) return kByPixels<3, 2, kGroups>;
  if constexpr (!kGroups) {
    if (task.kernel_w == 5 && task.stride_w == 1) return kByPixels<5, 1, kGroups>;
    if (task.kernel_w == 5 && task.stride_w == 2) return kByPixels<5, 2, kGroups>;
    if (task.kernel_w == 7 && task.stride_w == 1) return kByPixels<7, 1, kGroups>;
  }
  return kByPixels<0, 0, kGroups>;
}

void DepthwiseRow(const DepthwiseTask& task, int64_t y, float* out) {
  const int64_t first_y = y * task.stride_h - task.pad_top;
  const TapRange rows(first_y, task.in_h, task.kernel_h, task.dilation_h);
  const auto first_x = [&](int64_t x) { return x * task.stride_w - task.pad_left; };
  const auto run = [&](int64_t x, int64_t count, const PixelsFunction* functions) {
    const TapRange columns(first_x(x), task.in_w, task.kernel_w, task.dilation_w);
    functions[count](
        task, {rows, columns, task.image + (first_y * task.in_w + first_x(x)) * task.channels,
               out + x * task.channels});
  };
  // Outputs [begin, end) see all taps of a row.
  const int64_t span = (task.kernel_w - 1) * task.dilation_w + 1, last = task.in_w - span;
  const int64_t begin = HWY_MIN(task.out_w, (task.pad_left + task.stride_w - 1) / task.stride_w);
  const int64_t end =
      last < 0 ? begin
               : HWY_MAX(begin, HWY_MIN(task.out_w, (last + task.pad_left) / task.stride_w + 1));
  const bool groups = task.group != 1;
  const PixelsFunction* const edge = groups ? kByPixels<0, 0, true> : kByPixels<0, 0, false>;
  const PixelsFunction* const interior =
      groups ? InteriorFunctions<true>(task) : InteriorFunctions<false>(task);
  for (int64_t x = 0; x < begin; ++x) run(x, 1, edge);
  int64_t x = begin;
  for (int64_t tiles = (end - begin + kMostPixels - 1) / kMostPixels; tiles > 0; --tiles) {
    const int64_t count = (end - x + tiles - 1) / tiles;
    run(x, count, interior);
    x += count;
  }
  for (; x < task.out_w; ++x) run(x, 1, edge);
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
