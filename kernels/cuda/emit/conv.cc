// Conv2D, directly or by transforms, and Conv3D, and the gradients by their input, which are
// convolutions too: one for each phase of the stride.
#include "kernels/cuda/emit/conv.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/candidates.h"
#include "kernels/cpu/conv/conv_nd.h"
#include "kernels/cuda/emit/fft_conv.h"
#include "kernels/cuda/emit/product.h"
#include "kernels/cuda/emit/winograd.h"

namespace floe::cuda {

bool SmallNumbers(const ops::ConvNd& conv) {
  constexpr int64_t kMost = 1 << 20;
  for (int i = 0; i < conv.spatial; ++i) {
    const ops::WindowPads& pads = conv.pads[i];
    if (std::max({conv.stride[i], conv.dilation[i], pads.low, pads.high}) > kMost) return false;
  }
  return true;
}

void AppendConv(const ConvArgs& args, int64_t groups, Precision precision,
                std::vector<Launch>* launches) {
  const int64_t pixels = int64_t{args.images} * args.out[0] * args.out[1] * args.out[2];
  if (pixels == 0 || args.outputs == 0) return;
  const TileSide side = TileSideFor(pixels, args.outputs, groups, precision);
  const KernelId kernel = precision == Precision::kTf32   ? KernelId::conv_tf32
                          : precision == Precision::kBf16 ? KernelId::conv_bf16
                          : side == TileSide::k128        ? KernelId::conv_128x128
                          : side == TileSide::k64         ? KernelId::conv_64x64
                                                          : KernelId::conv_32x32;
  launches->push_back(Launch::Of(kernel,
                                 {Blocks(pixels, SideOf(side)), Blocks(args.outputs, SideOf(side)),
                                  static_cast<uint32_t>(groups)},
                                 args));
}

namespace {

using kernels::ConvNdSizes;

constexpr int64_t kMostGroups = 65535;

class ForwardConv final : public DeviceKernel {
 public:
  ForwardConv(const KernelArgs& args, const ops::ConvNd& conv)
      : conv_(conv), epilogue_(EpilogueOf(args.node.attrs)), precision_(args.options.precision) {
    if (!args.inputs[1].has_constant() || args.inputs[1].constant.elements() == 0) return;
    const Tensor& filter = args.inputs[1].constant;
    const int64_t n = filter.shape().dim(conv.spatial + 1), k = filter.elements() / n;
    layer_ = LayerOf(args, conv);
    if (n == FactorColumns(n)) {
      weights_.push_back(filter);
      return;
    }
    weights_.push_back(AllocateFactors(1, k, n));
    auto* to = static_cast<float*>(weights_.back().mutable_data());
    for (int64_t i = 0; i < k; ++i, to += FactorColumns(n))
      std::copy_n(filter.as<float>() + i * n, n, to);
  }

  absl::Span<const Tensor> Weights() const override { return weights_; }
  std::string Route() const override { return RouteOf(precision_); }
  bool NeedsInput(int i) const override { return i != 1 || weights_.empty(); }
  std::optional<VendorLayer> Layer() const override { return layer_; }
  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return i == 0;
  }
  bool WritesSpacedLines() const override { return !epilogue_.has_residual(); }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    if (addresses.out(0).elements() == 0) return;
    const ConvNdSizes s(conv_, addresses.in(0).shape, addresses.in(1).shape, addresses.out(0).shape,
                        true);
    const int64_t groups = s.groups();
    ConvArgs args = {};
    args.x = addresses.in(0).as<float>();
    args.x_pixel = addresses.InLineStride(0);
    args.x_image = s.image_pixels * args.x_pixel;
    args.y = addresses.out(0).as<float>();
    args.y_step[2] = addresses.OutLineStride(0);
    args.y_step[1] = s.result[2] * args.y_step[2];
    args.y_step[0] = s.result[1] * args.y_step[1];
    args.y_image = s.result[0] * args.y_step[0];
    args.images = static_cast<int32_t>(s.images);
    for (int d = 0; d < 3; ++d) {
      args.in[d] = static_cast<int32_t>(s.image[d]);
      args.out[d] = static_cast<int32_t>(s.result[d]);
      args.taps[d] = static_cast<int32_t>(s.taps[d]);
      args.stride[d] = static_cast<int32_t>(s.stride[d]);
      args.dilation[d] = static_cast<int32_t>(s.dilation[d]);
      args.low[d] = static_cast<int32_t>(s.low[d]);
    }
    args.channels = static_cast<int32_t>(s.filter_in);
    args.outputs = static_cast<int32_t>(s.filter_out / groups);
    args.weights = weights_.empty()
                       ? PlainFactor(addresses.in(1).as<float>(), s.filter_out, 1, s.filter_out, 4)
                       : PackedFactor(addresses.weight<float>(0), s.filter_out);
    FinishArgs(EpilogueArgsOf(addresses, epilogue_), groups, &args);
    AppendConv(args, groups, precision_, launches);
  }

 private:
  static std::optional<VendorLayer> LayerOf(const KernelArgs& args, const ops::ConvNd& conv) {
    const SymShape& x = args.inputs[0].type.shape;
    const Shape& filter = args.inputs[1].constant.shape();
    if (conv.spatial != 2 || args.options.precision != Precision::kFloat32 || !KnownInside(x))
      return std::nullopt;
    VendorLayer layer{.kind = VendorLayer::Kind::kConvolution,
                      .channels = x.dim(3).size(),
                      .outputs = filter.dim(3),
                      .groups = x.dim(3).size() / filter.dim(2)};
    for (int i = 0; i < 2; ++i) {
      const int64_t in = x.dim(i + 1).size(), span = conv.Span(i, filter.dim(i));
      const auto out = ops::WindowOutput(Dim(in), span, conv.stride[i], conv.pads[i]);
      if (!out.ok() || !out->concrete()) return std::nullopt;
      layer.in[i] = in;
      layer.out[i] = out->size();
      layer.taps[i] = filter.dim(i);
      layer.stride[i] = conv.stride[i];
      layer.dilation[i] = conv.dilation[i];
      layer.low[i] = ops::PadLow(in, out->size(), span, conv.stride[i], conv.pads[i]);
      // As a library counts that pads both sides alike.
      layer.uneven =
          layer.uneven || (in + 2 * layer.low[i] - span) / conv.stride[i] + 1 != out->size();
    }
    return layer.YRow() == 0 ? std::nullopt : std::optional(layer);
  }

  const ops::ConvNd conv_;
  const Epilogue epilogue_;
  const Precision precision_;
  std::vector<Tensor> weights_;
  std::optional<VendorLayer> layer_;
};

// One dim of a phase: outputs o = r - low + stride * q, for `count` q from first_q on, read the
// inputs q - (taps - 1) to q, times the dilation, which is 1 unless the stride is.
struct Phase {
  int64_t r, taps, first_q, count;
};

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t SignedCeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

Phase PhaseOf(int64_t r, int64_t taps, int64_t stride, int64_t low, int64_t out) {
  const int64_t first_q = SignedCeilDiv(low - r, stride),
                last_q = FloorDiv(out - 1 + low - r, stride);
  return {r, r < taps ? SignedCeilDiv(taps - r, stride) : 0, first_q, last_q - first_q + 1};
}

class BackwardConv final : public DeviceKernel {
 public:
  BackwardConv(const KernelArgs& args, const ops::ConvNd& conv, int64_t groups)
      : conv_(conv), epilogue_(EpilogueOf(args.node.attrs)), precision_(args.options.precision) {
    const Tensor& filter = args.inputs[1].constant;
    for (int d = 0; d < 3; ++d) {
      const int axis = d - (3 - conv.spatial);
      taps_[d] = axis < 0 ? 1 : filter.shape().dim(axis);
      stride_[d] = axis < 0 ? 1 : conv.stride[axis];
    }
    ForPhases([&](const int64_t(&r)[3]) { weights_.push_back(Packed(filter, groups, r)); });
  }

  absl::Span<const Tensor> Weights() const override { return weights_; }
  std::string Route() const override { return RouteOf(precision_); }
  // Inference needs the sizes.
  bool NeedsInput(int i) const override { return i != 1; }
  bool WritesSpacedLines() const override { return true; }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    if (addresses.out(0).elements() == 0) return;
    const ConvNdSizes s(conv_, addresses.out(0).shape, addresses.in(1).shape, addresses.in(2).shape,
                        false);
    int phase = 0;
    ForPhases([&](const int64_t(&r)[3]) {
      EmitPhase(addresses, s, r, addresses.weight<float>(phase++), launches);
    });
  }

 private:
  template <class F>
  void ForPhases(const F& f) const {
    int64_t r[3];
    for (r[0] = 0; r[0] < stride_[0]; ++r[0]) {
      for (r[1] = 0; r[1] < stride_[1]; ++r[1]) {
        for (r[2] = 0; r[2] < stride_[2]; ++r[2]) f(r);
      }
    }
  }

  // [taps in the order of the inputs, result channels of a group] x [groups, image channels of
  // one].
  Tensor Packed(const Tensor& filter, int64_t groups, const int64_t (&r)[3]) const {
    const int64_t ins = filter.shape().dim(conv_.spatial),
                  outs = filter.shape().dim(conv_.spatial + 1), of_group = outs / groups;
    int64_t taps[3], count = 1;
    for (int d = 0; d < 3; ++d) {
      taps[d] = PhaseOf(r[d], taps_[d], stride_[d], 0, 1).taps;
      count *= taps[d];
    }
    Tensor packed = AllocateFactors(1, count * of_group, groups * ins);
    auto* to = static_cast<float*>(packed.mutable_data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t j[3] = {i / taps[2] / taps[1], i / taps[2] % taps[1], i % taps[2]};
      int64_t tap = 0;
      for (int d = 0; d < 3; ++d) {
        tap = tap * taps_[d] + r[d] + (taps[d] - 1 - j[d]) * stride_[d];
      }
      for (int64_t o = 0; o < of_group; ++o, to += FactorColumns(groups * ins)) {
        for (int64_t column = 0; column < groups * ins; ++column) {
          const int64_t group = column / ins;
          to[column] = filter.as<float>()[(tap * ins + column % ins) * outs + group * of_group + o];
        }
      }
    }
    return packed;
  }

  void EmitPhase(const DeviceAddresses& addresses, const ConvNdSizes& s, const int64_t (&r)[3],
                 const float* weights, std::vector<Launch>* launches) const {
    const int64_t groups = s.groups();
    ConvArgs args = {};
    args.x = addresses.in(2).as<float>();
    args.x_pixel = s.result_channels;
    args.x_image = s.result_pixels * args.x_pixel;
    args.images = static_cast<int32_t>(s.images);
    int64_t step = addresses.OutLineStride(0), at = 0;
    for (int d = 2; d >= 0; --d) {
      const Phase phase = PhaseOf(r[d], s.taps[d], s.stride[d], s.low[d], s.image[d]);
      if (phase.count <= 0) return;
      args.in[d] = static_cast<int32_t>(s.result[d]);
      args.out[d] = static_cast<int32_t>(phase.count);
      args.taps[d] = static_cast<int32_t>(phase.taps);
      args.stride[d] = 1;
      args.dilation[d] = static_cast<int32_t>(s.dilation[d]);
      args.low[d] = static_cast<int32_t>((phase.taps - 1) * s.dilation[d] - phase.first_q);
      at += (phase.r - s.low[d] + s.stride[d] * phase.first_q) * step;
      args.y_step[d] = s.stride[d] * step;
      step *= s.image[d];
    }
    args.y = addresses.out(0).as<float>() + at;
    args.y_image = step;
    args.channels = static_cast<int32_t>(s.filter_out / groups);
    args.outputs = static_cast<int32_t>(s.filter_in);
    args.weights = PackedFactor(weights, s.channels);
    FinishArgs(EpilogueArgsOf(addresses, epilogue_), groups, &args);
    AppendConv(args, groups, precision_, launches);
  }

  const ops::ConvNd conv_;
  const Epilogue epilogue_;
  const Precision precision_;
  int64_t taps_[3], stride_[3];
  std::vector<Tensor> weights_;  // by phase
};

template <int kSpatial>
absl::StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd conv, ops::ConvNdOf(args.node.attrs, kSpatial));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(conv.channels_first));
  const auto direct = [&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<ForwardConv>(args, conv);
  };
  // The others compute in float32 alone.
  const bool choose = kSpatial == 2 && args.options.precision == Precision::kFloat32;
  const auto fft = choose ? PlanFftOnDevice(args, conv) : std::nullopt;
  std::vector<Candidate> candidates;
  if (choose) candidates = WinogradCandidates(args, conv);
  if (fft.has_value()) {
    candidates.push_back(
        {"fft", fft->cost_us, true, [&] { return MakeFftOnDevice(args, conv, *fft); }});
  }
  if (candidates.empty() && args.options.routes.count(args.node.name) == 0) return direct();
  const std::optional<double> cost =
      fft.has_value() ? std::optional(fft->direct_cost_us) : PlainConvCost(args, conv);
  candidates.insert(candidates.begin(), {"gemm", cost, true, direct});
  return MakeChosen(args, candidates);
}

template <int kSpatial>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBackward(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd conv, ops::ConvNdOf(args.node.attrs, kSpatial));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(conv.channels_first));
  if (!args.inputs[1].has_constant() || args.inputs[1].constant.elements() == 0) {
    return absl::UnimplementedError(absl::StrCat(
        args.node.op->name, " on a GPU needs a constant filter; have it computed on the CPU"));
  }
  const int64_t channels = kernels::ImageChannels(args, conv),
                ins = args.inputs[1].constant.shape().dim(kSpatial);
  return std::make_unique<BackwardConv>(args, conv, channels < 0 ? 1 : channels / ins);
}

bool GroupsFit(Dim channels, Dim ins, Dim outs) {
  if (!channels.concrete() || !ins.concrete() || !outs.concrete() || ins.size() == 0) return false;
  const int64_t groups = channels.size() / ins.size();
  return channels.size() % ins.size() == 0 && groups > 0 && groups <= kMostGroups &&
         outs.size() % groups == 0;
}

template <int kSpatial>
bool ComputesForward(const KernelArgs& args) {
  const auto conv = ops::ConvNdOf(args.node.attrs, kSpatial);
  if (!conv.ok() || conv->channels_first || !SmallNumbers(*conv)) return false;
  const SymShape &x = args.inputs[0].type.shape, &filter = args.inputs[1].type.shape;
  if (!KnownInside(x) || !filter.concrete() || x.rank() != kSpatial + 2) return false;
  return GroupsFit(x.dim(kSpatial + 1), filter.dim(kSpatial), filter.dim(kSpatial + 1)) &&
         BiasFits(args, EpilogueOf(args.node.attrs), filter.dim(kSpatial + 1));
}

template <int kSpatial>
bool ComputesBackward(const KernelArgs& args) {
  const auto conv = ops::ConvNdOf(args.node.attrs, kSpatial);
  if (!conv.ok() || conv->channels_first || !SmallNumbers(*conv)) return false;
  int64_t phases = 1;
  for (int i = 0; i < kSpatial; ++i) {
    phases *= std::min<int64_t>(conv->stride[i], 1 << 10);
    if (conv->stride[i] > 1 && conv->dilation[i] > 1) return false;
  }
  if (phases > 64 || args.inputs[2].type.dtype != DType::kFloat32) return false;
  const SymShape &filter = args.inputs[1].type.shape, &x = args.inputs[2].type.shape;
  if (!KnownInside(x) || !filter.concrete() || x.rank() != kSpatial + 2) return false;
  // How many groups there are, the filter does not tell.
  if (!args.inputs[1].has_constant() || !args.inputs[0].constant.valid()) return false;
  const int64_t channels = kernels::ImageChannels(args, *conv);
  return channels >= 0 && Same(filter.dim(kSpatial + 1), x.dim(kSpatial + 1)) &&
         GroupsFit(Dim(channels), filter.dim(kSpatial), filter.dim(kSpatial + 1)) &&
         BiasFits(args, EpilogueOf(args.node.attrs), Dim(channels));
}

const KernelRegistrar kConv2D("Conv2D", DeviceKind::kCuda, {DType::kFloat32}, MakeForward<2>,
                              {.options_key = kernels::ConvOptionsKey,
                               .computes = ComputesForward<2>});
const KernelRegistrar kConv3D("Conv3D", DeviceKind::kCuda, {DType::kFloat32}, MakeForward<3>,
                              {.computes = ComputesForward<3>});
// Found by the type of input_sizes.
const KernelRegistrar kBackward2D("Conv2DBackpropInput", DeviceKind::kCuda, {}, MakeBackward<2>,
                                  {.computes = ComputesBackward<2>});
const KernelRegistrar kBackward3D("Conv3DBackpropInputV2", DeviceKind::kCuda, {}, MakeBackward<3>,
                                  {.computes = ComputesBackward<3>});

}  // namespace

void FinishArgs(const EpilogueArgs& epilogue, int64_t groups, ConvArgs* args) {
  args->epilogue = epilogue;
  args->x_vectors = args->channels % 4 == 0 && args->x_pixel % 4 == 0 && args->x_image % 4 == 0 &&
                    Aligned(args->x);
  bool steps = args->y_image % 4 == 0;
  for (const int64_t step : args->y_step) steps = steps && step % 4 == 0;
  args->y_vectors = steps && args->outputs % 4 == 0 && Aligned(args->y) && Aligned(epilogue);
  args->weights.vectors = args->weights.vectors && (groups == 1 || args->outputs % 4 == 0);
}

}  // namespace floe::cuda
