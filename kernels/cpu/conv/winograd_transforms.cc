#include "kernels/cpu/conv/winograd_transforms.h"

#include "kernels/cpu/hwy_targets.h"
#include "kernels/cpu/isa.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/winograd_transforms.cc"  // compiled once per ISA
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "kernels/cpu/conv/winograd_lines-inl.h"
#include "kernels/cpu/gemm/activation-inl.h"
#include "kernels/cpu/partial-inl.h"

// Loops over the pixels of a tile must vanish, so that their vectors may stay in registers.
#define FLOE_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace floe::kernels::HWY_NAMESPACE {
namespace {

using D = WinogradD;
using V = WinogradV;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int64_t kPanel = 2 * kLanes;  // columns of a packed panel

HWY_INLINE V LoadSome(const float* p, int64_t left) {
  return left >= kLanes ? hn::LoadU(D(), p) : LoadPartial(D(), p, left);
}

HWY_INLINE void StoreSome(V v, float* p, int64_t left) {
  if (left >= kLanes) {
    hn::StoreU(v, D(), p);
  } else {
    StorePartial(D(), v, p, left);
  }
}

// The two dims of a form.
template <int kTileH, int kTapsH, int kTileW, int kTapsW>
struct Form {
  static constexpr int kH = kTileH + kTapsH - 1, kW = kTileW + kTapsW - 1;
  using LineH = Line<kTileH, kTapsH>;
  using LineW = Line<kTileW, kTapsW>;

  static HWY_INLINE void InputVector(const float* const* pixels, int64_t c, int64_t left, float* to,
                                     int64_t plane) {
    V half[kH][kW];
    FLOE_UNROLL for (int j = 0; j < kW; ++j) {
      V x[kH], column[kH];
      FLOE_UNROLL for (int i = 0; i < kH; ++i) x[i] = LoadSome(pixels[i * kW + j] + c, left);
      LineH::Input(x, column);
      FLOE_UNROLL for (int i = 0; i < kH; ++i) half[i][j] = column[i];
    }
    FLOE_UNROLL for (int i = 0; i < kH; ++i) {
      V row[kW];
      LineW::Input(half[i], row);
      FLOE_UNROLL for (int j = 0; j < kW; ++j) {
        hn::Store(row[j], D(), to + (i * kW + j) * plane + c);
      }
    }
  }

  static void Input(const float* const* pixels, int64_t channels, float* to, int64_t plane) {
    int64_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) InputVector(pixels, c, kLanes, to, plane);
    if (c < channels) InputVector(pixels, c, channels - c, to, plane);
  }

  // Bias, residual and activation, then one vector of channels of each pixel is stored.
  static HWY_INLINE void Finish(V (&y)[kTileH][kTileW], const WinogradResult& result, int64_t c) {
    const D d;
    const int64_t left = result.channels - c;
    if (result.bias != nullptr) {
      const V bias = hn::LoadU(d, result.bias + c);
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) y[i][j] = hn::Add(y[i][j], bias);
      }
    }
    if (result.residual != nullptr) {
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) {
          if (i < result.rows && j < result.columns) {
            const float* added =
                result.residual + i * result.row_stride + j * result.column_stride + c;
            y[i][j] = hn::Add(y[i][j], LoadSome(added, left));
          }
        }
      }
    }
    if (result.activation == Activation::kRelu) {
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) y[i][j] = Relu(d, y[i][j]);
      }
    } else if (result.activation == Activation::kRelu6) {
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) y[i][j] = Relu6(d, y[i][j]);
      }
    } else if (result.activation != Activation::kNone) {
      HWY_ALIGN float values[kTileH * kTileW * kLanes];
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) {
          hn::Store(y[i][j], d, values + (i * kTileW + j) * kLanes);
        }
      }
      ActivateInPlace(result.activation, result.alpha, {values, 1, 0, kTileH * kTileW * kLanes});
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) {
          y[i][j] = hn::Load(d, values + (i * kTileW + j) * kLanes);
        }
      }
    }
    FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
      if (i < result.rows) {
        float* row = result.base + i * result.row_stride + c;
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) {
          if (j < result.columns) StoreSome(y[i][j], row + j * result.column_stride, left);
        }
      }
    }
  }

  static void Output(const float* from, int64_t plane, const WinogradResult& result) {
    for (int64_t c = 0; c < result.channels; c += kLanes) {
      V half[kTileH][kW], y[kTileH][kTileW];
      FLOE_UNROLL for (int j = 0; j < kW; ++j) {
        V m[kH], column[kTileH];
        FLOE_UNROLL for (int i = 0; i < kH; ++i) {
          m[i] = hn::Load(D(), from + (i * kW + j) * plane + c);
        }
        LineH::Output(m, column);
        FLOE_UNROLL for (int i = 0; i < kTileH; ++i) half[i][j] = column[i];
      }
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) LineW::Output(half[i], y[i]);
      Finish(y, result, c);
    }
  }

  // One vector of columns of one channel; `width` floats from channel to channel of its panel.
  static HWY_INLINE void WeightsVector(const float* filter, int64_t tap, int64_t left, float* to,
                                       int64_t plane) {
    V half[kH][kTapsW];
    FLOE_UNROLL for (int j = 0; j < kTapsW; ++j) {
      V w[kTapsH], column[kH];
      FLOE_UNROLL for (int i = 0; i < kTapsH; ++i) {
        w[i] = LoadSome(filter + (i * kTapsW + j) * tap, left);
      }
      LineH::Weights(w, column);
      FLOE_UNROLL for (int i = 0; i < kH; ++i) half[i][j] = column[i];
    }
    FLOE_UNROLL for (int i = 0; i < kH; ++i) {
      V row[kW];
      LineW::Weights(half[i], row);
      FLOE_UNROLL for (int j = 0; j < kW; ++j) {
        hn::Store(row[j], D(), to + (i * kW + j) * plane);
      }
    }
  }

  static void Weights(const float* filter, int64_t channels, int64_t columns, float* to,
                      int64_t plane) {
    const int64_t padded = (columns + kLanes - 1) / kLanes * kLanes;
    for (int64_t panel = 0; panel < padded; panel += kPanel) {
      const int64_t width = HWY_MIN(kPanel, padded - panel);
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t v = 0; v < width; v += kLanes) {
          WeightsVector(filter + c * columns + panel + v, channels * columns, columns - panel - v,
                        to + panel * channels + c * width + v, plane);
        }
      }
    }
  }

  static void Direct(const float* const* pixels, const float* filter, int64_t channels,
                     const WinogradResult& result) {
    const D d;
    const int64_t columns = result.channels;
    for (int64_t k = 0; k < columns; k += kLanes) {
      V y[kTileH][kTileW];
      FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
        FLOE_UNROLL for (int j = 0; j < kTileW; ++j) y[i][j] = hn::Zero(d);
      }
      const float* taps = filter + k;
      for (int tap = 0; tap < kTapsH * kTapsW; ++tap) {
        const float* const* first = pixels + tap / kTapsW * kW + tap % kTapsW;
        for (int64_t c = 0; c < channels; ++c, taps += columns) {
          const V w = LoadSome(taps, columns - k);
          FLOE_UNROLL for (int i = 0; i < kTileH; ++i) {
            FLOE_UNROLL for (int j = 0; j < kTileW; ++j) {
              y[i][j] = hn::MulAdd(hn::Set(d, first[i * kW + j][c]), w, y[i][j]);
            }
          }
        }
      }
      Finish(y, result, k);
    }
  }

  static constexpr WinogradForm Functions() {
    return {{kTileH, kTapsH}, {kTileW, kTapsW}, Input, Output, Weights, Direct};
  }
};

constexpr WinogradForm kForms[] = {
    Form<4, 3, 4, 3>::Functions(), Form<2, 3, 2, 3>::Functions(), Form<4, 5, 4, 5>::Functions(),
    Form<2, 5, 2, 5>::Functions(), Form<1, 1, 4, 3>::Functions(), Form<4, 3, 1, 1>::Functions(),
    Form<1, 1, 4, 5>::Functions(), Form<4, 5, 1, 1>::Functions(), Form<1, 1, 2, 7>::Functions(),
    Form<2, 7, 1, 1>::Functions(),
};

const WinogradForm* Forms(size_t* count) {
  *count = sizeof(kForms) / sizeof(kForms[0]);
  return kForms;
}

void Largest(const float* pixels, int64_t count, int64_t channels, int64_t stride, uint32_t* most) {
  const hn::RebindToSigned<D> bits;
  const auto mask = hn::Set(bits, 0x7FFFFFFF);
  for (int64_t i = 0; i < count; ++i, pixels += stride) {
    auto largest = hn::Zero(bits);
    for (int64_t c = 0; c < channels; c += kLanes) {
      const V x = LoadSome(pixels + c, channels - c);
      largest = hn::Max(largest, hn::And(mask, hn::BitCast(bits, x)));
    }
    most[i] = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(bits, largest)));
  }
}

}  // namespace
}  // namespace floe::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace floe::kernels {

HWY_EXPORT(Forms);
HWY_EXPORT(Largest);

absl::Span<const WinogradForm> WinogradForms() {
  ChooseIsa();
  size_t count = 0;
  const WinogradForm* forms = HWY_DYNAMIC_DISPATCH(Forms)(&count);
  return {forms, count};
}

LargestOfPixels PickLargestOfPixels() {
  ChooseIsa();
  return &HWY_DYNAMIC_DISPATCH(Largest);
}

}  // namespace floe::kernels
#endif
