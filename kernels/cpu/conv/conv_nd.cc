// Conv3D and the gradients of convolutions by their input: the plain loops, with float64 sums, and
// the choice of the form.
#include "kernels/cpu/conv/conv_nd.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/candidates.h"
#include "kernels/cpu/conv/conv_cost.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/plain_sum.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

using ops::ConvNd;
using Convolved = TypeList<float, double, Half, BFloat16, int32_t>;

// Calls f(tap, other pixel) for each tap that joins `pixel` of one side to a pixel of the other.
// kForward: `pixel` is of the result, the other of the image.
template <bool kForward, class F>
void ForTaps(const ConvNdSizes& s, int64_t pixel, const F& f) {
  const int64_t* from = kForward ? s.result : s.image;
  const int64_t* to = kForward ? s.image : s.result;
  const int64_t at[3] = {pixel / (from[1] * from[2]), pixel / from[2] % from[1], pixel % from[2]};
  const auto other = [&](int k, int64_t tap, int64_t* where) {
    if constexpr (kForward) {
      *where = at[k] * s.stride[k] + tap * s.dilation[k] - s.low[k];
    } else {
      const int64_t steps = at[k] + s.low[k] - tap * s.dilation[k];
      if (steps < 0 || steps % s.stride[k] != 0) return false;
      *where = steps / s.stride[k];
    }
    return *where >= 0 && *where < to[k];
  };
  int64_t z, y, x;
  for (int64_t kz = 0; kz < s.taps[0]; ++kz) {
    if (!other(0, kz, &z)) continue;
    for (int64_t ky = 0; ky < s.taps[1]; ++ky) {
      if (!other(1, ky, &y)) continue;
      for (int64_t kx = 0; kx < s.taps[2]; ++kx) {
        if (other(2, kx, &x))
          f((kz * s.taps[1] + ky) * s.taps[2] + kx, (z * to[1] + y) * to[2] + x);
      }
    }
  }
}

// Every pixel of all images: sum(pixel of the batch, sums by channel) and the sums written.
template <class T, class F>
absl::Status ForPixels(const ConvNdSizes& s, const Epilogue& epilogue, const KernelContext& ctx,
                       int64_t pixels, int64_t channels, const F& sum) {
  T* to = ctx.out(0).as<T>();
  const T* bias = BiasOf<T>(ctx, epilogue);
  const int64_t cost = s.tap_count() * s.filter_in * s.filter_out + channels;
  const int64_t grain = std::max<int64_t>(1, kElementGrain / cost);
  return WatchedRange(ctx.pool, s.images * pixels, grain, [&](int64_t begin, int64_t end) {
    std::vector<PlainSum<T>> sums(channels);
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), PlainSum<T>(0));
      sum(i / pixels, i % pixels, sums.data());
      for (int64_t c = 0; c < channels; ++c)
        to[i * channels + c] =
            PlainFinish<T>(epilogue, sums[c], bias == nullptr ? nullptr : bias + c);
    }
  });
}

template <class T>
absl::Status Forward(const ConvNdSizes& s, const Epilogue& epilogue, const KernelContext& ctx) {
  const T *image = ctx.in(0).as<T>(), *filter = ctx.in(1).as<T>();
  const int64_t of_group = s.filter_out / s.groups();
  return ForPixels<T>(s, epilogue, ctx, s.result_pixels, s.result_channels,
                      [&](int64_t n, int64_t pixel, PlainSum<T>* sums) {
                        const T* from = image + n * s.image_pixels * s.channels;
                        ForTaps<true>(s, pixel, [&](int64_t tap, int64_t other) {
                          for (int64_t c = 0; c < s.channels; ++c) {
                            const PlainSum<T> x = PlainWide(from[other * s.channels + c]);
                            const T* w =
                                filter + (tap * s.filter_in + c % s.filter_in) * s.filter_out;
                            const int64_t first = c / s.filter_in * of_group;
                            for (int64_t o = first; o < first + of_group; ++o)
                              sums[o] += x * PlainWide(w[o]);
                          }
                        });
                      });
}

template <class T>
absl::Status Backward(const ConvNdSizes& s, const Epilogue& epilogue, const KernelContext& ctx) {
  const T *result = ctx.in(2).as<T>(), *filter = ctx.in(1).as<T>();
  const int64_t of_group = s.filter_out / s.groups();
  return ForPixels<T>(
      s, epilogue, ctx, s.image_pixels, s.channels,
      [&](int64_t n, int64_t pixel, PlainSum<T>* sums) {
        const T* from = result + n * s.result_pixels * s.result_channels;
        ForTaps<false>(s, pixel, [&](int64_t tap, int64_t other) {
          for (int64_t c = 0; c < s.channels; ++c) {
            const T* w = filter + (tap * s.filter_in + c % s.filter_in) * s.filter_out;
            const int64_t first = c / s.filter_in * of_group;
            for (int64_t o = first; o < first + of_group; ++o)
              sums[c] += PlainWide(from[other * s.result_channels + o]) * PlainWide(w[o]);
          }
        });
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConv3D(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ConvNd conv, ops::ConvNdOf(args.node.attrs, 3));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(conv.channels_first));
  const Epilogue epilogue = EpilogueOf(args.node.attrs);
  if (args.inputs[0].type.dtype == DType::kFloat32 && args.options.gemm != GemmBackend::kReference)
    return MakeVolumeConv(args, conv, epilogue);
  return FromFunction([conv, epilogue](const KernelContext& ctx) -> absl::Status {
    const ConvNdSizes s(conv, ctx.in(0).shape, ctx.in(1).shape, ctx.out(0).shape, true);
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    FLOE_RETURN_IF_ERROR(CheckConvNd(conv, s, ctx.out(0).shape));
    FLOE_RETURN_IF_ERROR(CheckBias(ctx, epilogue, s.result_channels));
    absl::Status status;
    ForDType(ctx.in(0).dtype, Convolved{},
             [&](auto t) { status = Forward<decltype(t)>(s, epilogue, ctx); });
    return status;
  });
}

using Made = absl::StatusOr<std::unique_ptr<Kernel>>;

template <int kSpatial>
Made MakeBackprop(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ConvNd conv, ops::ConvNdOf(args.node.attrs, kSpatial));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(conv.channels_first));
  const Epilogue epilogue = EpilogueOf(args.node.attrs);
  const DType dtype = args.inputs[2].type.dtype;
  if (!ForDType(dtype, Convolved{}, [](auto) {}))
    return absl::UnimplementedError(absl::StrCat(kSpatial, "-D gradients of ", DTypeName(dtype)));
  const bool plain = dtype != DType::kFloat32 || args.options.gemm == GemmBackend::kReference;
  std::vector<Candidate> candidates;
  const GradientCosts costs = plain ? GradientCosts() : CostsOfGradient(args, PickGemm());
  if (!plain && PhasesFit(args, conv)) {
    candidates.push_back({"phases", costs.Of(costs.phases), true,
                          [&]() -> Made { return MakePhasesConv(args, conv, epilogue); }});
  }
  if (!plain) {
    candidates.push_back({"columns", costs.Of(costs.columns), true,
                          [&]() -> Made { return MakeColumnsConv(args, conv, epilogue); }});
    // Which of them costs less does not depend on the number of pixels.
    if (costs.columns < costs.phases) std::reverse(candidates.begin(), candidates.end());
  }
  candidates.push_back({"reference", std::nullopt, plain, [&]() -> Made {
                          return FromFunction([conv, epilogue](const KernelContext& ctx) {
                            return RunPlainBackward(conv, epilogue, ctx);
                          });
                        }});
  return MakeChosen(args, candidates);
}

FLOE_REGISTER_KERNEL(Conv3D, kCpu, MakeConv3D, DType::kFloat32, DType::kFloat64, DType::kFloat16,
                     DType::kBFloat16);
// The first input is the sizes, whose type says nothing.
FLOE_REGISTER_KERNEL(Conv2DBackpropInput, kCpu, MakeBackprop<2>);
FLOE_REGISTER_KERNEL(Conv3DBackpropInputV2, kCpu, MakeBackprop<3>);

}  // namespace

absl::Status CheckBias(const KernelContext& ctx, const Epilogue& epilogue, int64_t channels) {
  if (!epilogue.has_bias()) return absl::OkStatus();
  const int64_t elements = ctx.in(epilogue.bias).elements();
  if (elements == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("bias has ", elements, " elements for ", channels, " channels"));
}

absl::Status CheckBackward(const ConvNd& conv, const ConvNdSizes& s, const KernelContext& ctx,
                           const Epilogue& epilogue) {
  const Shape& gradient = ctx.in(2).shape;
  if (gradient.dim(0) != s.images)
    return absl::InvalidArgumentError(
        absl::StrCat("input_sizes have batch ", s.images, ", the gradient ", gradient.dim(0)));
  FLOE_RETURN_IF_ERROR(CheckConvNd(conv, s, gradient));
  return CheckBias(ctx, epilogue, s.channels);
}

int64_t ImageChannels(const KernelArgs& args, const ConvNd& conv) {
  const ValueInfo& info = args.inputs[0];
  if (!info.constant.valid()) return -1;
  const auto sizes = IntegerValues(info.constant.view());
  if (!sizes.ok()) return -1;
  if (static_cast<int>(sizes->size()) == conv.spatial)
    return args.inputs[1].constant.shape().dim(conv.spatial);
  if (static_cast<int>(sizes->size()) != conv.spatial + 2) return -1;
  const int channels = conv.channel_axis();
  if (info.per_row.valid()) {  // the batch is the rows'; the channels are not
    const auto per_row = IntegerValues(info.per_row.view());
    if (!per_row.ok() || (*per_row)[channels] != 0) return -1;
  }
  return (*sizes)[channels];
}

absl::Status RunPlainBackward(const ConvNd& conv, const Epilogue& epilogue,
                              const KernelContext& ctx) {
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  const ConvNdSizes s(conv, ctx.out(0).shape, ctx.in(1).shape, ctx.in(2).shape, false);
  FLOE_RETURN_IF_ERROR(CheckBackward(conv, s, ctx, epilogue));
  absl::Status status;
  ForDType(ctx.in(2).dtype, Convolved{},
           [&](auto t) { status = Backward<decltype(t)>(s, epilogue, ctx); });
  return status;
}

ConvNdSizes::ConvNdSizes(const ConvNd& conv, const Shape& in, const Shape& filter, const Shape& out,
                         bool forward)
    : images(in.dim(0)),
      channels(in.dim(conv.channel_axis())),
      filter_in(filter.dim(conv.spatial)),
      filter_out(filter.dim(conv.spatial + 1)),
      result_channels(out.dim(conv.channel_axis())) {
  const int missing = 3 - conv.spatial;
  for (int k = 0; k < 3; ++k) {
    const int i = k - missing;
    image[k] = i < 0 ? 1 : in.dim(conv.axis(i));
    result[k] = i < 0 ? 1 : out.dim(conv.axis(i));
    taps[k] = i < 0 ? 1 : filter.dim(i);
    stride[k] = i < 0 ? 1 : conv.stride[i];
    dilation[k] = i < 0 ? 1 : conv.dilation[i];
    low[k] = i < 0 ? 0
                   : ops::PadLow(image[k], result[k], conv.Span(i, taps[k]), stride[k],
                                 conv.pads[i], forward && conv.spatial == 3);
  }
  image_pixels = image[0] * image[1] * image[2];
  result_pixels = result[0] * result[1] * result[2];
}

absl::Status CheckConvNd(const ConvNd& conv, const ConvNdSizes& s, const Shape& result) {
  if (s.filter_in == 0 || s.channels % s.filter_in != 0 || s.groups() == 0 ||
      s.filter_out % s.groups() != 0 || s.filter_out != s.result_channels) {
    return absl::InvalidArgumentError(absl::StrCat("a filter of ", s.filter_in, " x ", s.filter_out,
                                                   " channels for ", s.channels, " x ",
                                                   s.result_channels));
  }
  for (int i = 0; i < conv.spatial; ++i) {
    const int k = i + 3 - conv.spatial;
    FLOE_ASSIGN_OR_RETURN(const Dim want, ops::WindowOutput(s.image[k], conv.Span(i, s.taps[k]),
                                                            s.stride[k], conv.pads[i]));
    if (want.size() != s.result[k])
      return absl::InvalidArgumentError(
          absl::StrCat("spatial dim ", i, " of ", result.ToString(), " should be ", want.size()));
  }
  return absl::OkStatus();
}

}  // namespace floe::kernels
