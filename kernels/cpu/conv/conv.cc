#include "kernels/cpu/conv/conv.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/candidates.h"
#include "kernels/cpu/conv/conv_cost.h"
#include "kernels/cpu/conv/conv_nd.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/conv/fft_conv.h"
#include "kernels/cpu/conv/winograd_conv.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"

namespace floe::kernels {

ConvSizes::ConvSizes(const ops::ConvNd& window, const Shape& input, const Shape& filter,
                     const Shape& output)
    : images(input.dim(0)),
      in_h(input.dim(window.axis(0))),
      in_w(input.dim(window.axis(1))),
      in_c(input.dim(window.channel_axis())),
      kernel_h(filter.dim(0)),
      kernel_w(filter.dim(1)),
      filter_in(filter.dim(2)),
      filter_out(filter.dim(3)),
      out_h(output.dim(window.axis(0))),
      out_w(output.dim(window.axis(1))),
      out_c(output.dim(window.channel_axis())),
      // Steps that nothing makes may be of any size; times a row of floats they would not fit.
      stride_h(out_h > 1 ? window.stride[0] : 1),
      stride_w(out_w > 1 ? window.stride[1] : 1),
      dilation_h(kernel_h > 1 ? window.dilation[0] : 1),
      dilation_w(kernel_w > 1 ? window.dilation[1] : 1) {
  const int64_t span_h = window.Span(0, kernel_h), span_w = window.Span(1, kernel_w);
  pad_top = ops::PadLow(in_h, out_h, span_h, stride_h, window.pads[0]);
  pad_left = ops::PadLow(in_w, out_w, span_w, stride_w, window.pads[1]);
  padded_h = std::max(pad_top + in_h, (out_h - 1) * stride_h + span_h);
  padded_w = std::max(pad_left + in_w, (out_w - 1) * stride_w + span_w);
  in_pixel = in_c;
  out_pixel = out_c;
}

ConvSizes::ConvSizes(const ops::ConvNd& window, const KernelContext& ctx)
    : ConvSizes(window, ctx.in(0).shape, ctx.in(1).shape, ctx.out(0).shape) {
  in_pixel = ctx.InLineStride(0);
  out_pixel = ctx.OutLineStride(0);
}

absl::Status CheckConv(const ConvSizes& s, const KernelContext& ctx, const Epilogue& epilogue,
                       bool depthwise) {
  const bool channels_fit = depthwise ? s.filter_in == s.in_c && s.out_c == s.in_c * s.filter_out
                                      : s.filter_in > 0 && s.in_c >= s.filter_in &&
                                            s.in_c % s.filter_in == 0 && s.out_c == s.filter_out &&
                                            s.out_c % (s.in_c / s.filter_in) == 0;
  if (!channels_fit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", ctx.in(0).shape.ToString(), " does not fit filter ", ctx.in(1).shape.ToString()));
  }
  FLOE_RETURN_IF_ERROR(CheckBias(ctx, epilogue, s.out_c));
  if (!epilogue.has_residual()) return absl::OkStatus();
  const Shape &residual = ctx.in(epilogue.residual).shape, &out = ctx.out(0).shape;
  if (residual == out) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot add ", residual.ToString(), " to ", out.ToString()));
}

namespace {

constexpr int64_t kRowsPerChunk = 8;

// A row of the image.
void CopyPixels(const ConvSizes& s, const float* from, float* to) {
  if (s.in_pixel == s.in_c) {
    std::copy_n(from, s.in_w * s.in_c, to);
    return;
  }
  for (int64_t x = 0; x < s.in_w; ++x, from += s.in_pixel, to += s.in_c)
    std::copy_n(from, s.in_c, to);
}

}  // namespace

void PadImage(const ConvSizes& s, const float* image, float* padded, ThreadPool& pool) {
  const int64_t row_floats = s.padded_w * s.in_c, left = s.pad_left * s.in_c;
  const int64_t right = row_floats - left - s.in_w * s.in_c;
  const auto pad_rows = [&](int64_t chunk) {
    const int64_t end = std::min(s.padded_h, (chunk + 1) * kRowsPerChunk);
    for (int64_t y = chunk * kRowsPerChunk; y < end; ++y) {
      float* row = padded + y * row_floats;
      if (y < s.pad_top || y >= s.pad_top + s.in_h) {
        std::fill_n(row, row_floats, 0.0f);
        continue;
      }
      std::fill_n(row, left, 0.0f);
      CopyPixels(s, image + (y - s.pad_top) * s.in_w * s.in_pixel, row + left);
      std::fill_n(row + row_floats - right, right, 0.0f);
    }
  };
  pool.ParallelFor((s.padded_h + kRowsPerChunk - 1) / kRowsPerChunk, pad_rows);
}

const float* PaddedImage(const ConvSizes& s, const float* image, float* scratch, ThreadPool& pool) {
  if (!s.needs_padding()) return image;
  PadImage(s, image, scratch, pool);
  return scratch;
}

int64_t PaddedScratch(const ConvSizes& s) {
  return s.needs_padding() ? ScratchFloats({s.padded_h, s.padded_w, s.in_c}) : 0;
}

namespace {

// Small images do not look at the time themselves.
constexpr int64_t kUnwatchedImages = 16;

// The packed multiplication over image rows read in place: each output pixel is a row of A whose K
// elements are the contiguous pieces of the input under the filter.
class NativeConv final : public Kernel {
 public:
  NativeConv(const KernelArgs& args, const ops::ConvNd& window, const Epilogue& epilogue)
      : window_(window), epilogue_(epilogue), gemm_(PickGemm()), bias_(args, epilogue, gemm_) {
    if (!args.inputs[1].has_constant()) return;
    const Shape& filter = args.inputs[1].constant.shape();
    if (filter.elements() == 0) return;  // of any number of groups
    const SymShape& input = args.inputs[0].type.shape;
    // Unknown channels are most likely the filter's; Run packs again should that be wrong.
    const Dim channels = input.rank_known() ? input.dim(window.channel_axis()) : Dim::Unknown();
    groups_known_ = channels.concrete();
    packed_groups_ =
        channels.concrete() && channels.size() > 0 ? channels.size() / filter.dim(2) : 1;
    const int64_t k = filter.dim(0) * filter.dim(1) * filter.dim(2),
                  n = filter.dim(3) / packed_groups_;
    packed_ = PackedMemory(packed_groups_ * gemm_.PackedFloats(k, n) * sizeof(float));
    PackGroups(gemm_, args.inputs[1].constant.as<float>(), packed_groups_, k, n,
               reinterpret_cast<float*>(packed_.data()));
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvSizes s(window_, inputs[0], inputs[1], outputs[0]);
    return ScratchPieces::Bytes({bias_.ScratchFloats(s.out_c), PackScratch(s), PaddedScratch(s)});
  }
  std::string Route() const override { return absl::StrCat("implicit GEMM, ", NativeRoute(gemm_)); }
  bool NeedsInput(int i) const override { return i != 1 || packed_groups_ == 0 || !groups_known_; }
  size_t PackedBytes() const override { return packed_.size(); }
  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return i == 0;
  }
  // The multiplication takes the residual as it makes the result.
  bool WritesSpacedLines() const override { return !epilogue_.has_residual(); }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes s(window_, ctx);
    FLOE_RETURN_IF_ERROR(CheckConv(s, ctx, epilogue_, false));
    if (s.images == 0 || s.out_floats() == 0) return absl::OkStatus();
    ScratchPieces pieces(ctx.scratch);
    const float* bias = bias_.Padded(ctx, s.out_c, pieces);
    const float* weights = Weights(ctx, s, pieces);
    float* padded = pieces.Floats(PaddedScratch(s));
    const float* in = ctx.in(0).as<float>();
    float* out = ctx.out(0).as<float>();
    const float* residual = ResidualOf<float>(ctx, epilogue_);
    if (IsMatrix(s)) {
      return Multiply(s, in, weights, {bias, residual}, out, s.images * s.out_pixels(), *ctx.pool);
    }
    // Image by image, so that the scratch does not grow with the batch.
    for (int64_t i = 0; i < s.images; ++i, in += s.image_floats(), out += s.out_floats()) {
      const float* image = PaddedImage(s, in, padded, *ctx.pool);
      if (i % kUnwatchedImages == kUnwatchedImages - 1) FLOE_RETURN_IF_ERROR(CheckRunTime());
      FLOE_RETURN_IF_ERROR(
          Multiply(s, image, weights, {bias, residual}, out, s.out_pixels(), *ctx.pool));
      if (residual != nullptr) residual += s.out_floats();
    }
    return absl::OkStatus();
  }

 private:
  // A filter of one tap over every pixel: all images are one matrix. The strides do not tell: where
  // one output pixel is made, ConvSizes has none.
  static bool IsMatrix(const ConvSizes& s) {
    return s.kernel_h == 1 && s.kernel_w == 1 && s.out_h == s.in_h && s.out_w == s.in_w &&
           !s.needs_padding();
  }

  int64_t PackScratch(const ConvSizes& s) const {
    const int64_t groups = s.filter_in > 0 ? s.in_c / s.filter_in : 0;
    if (groups == 0 || groups == packed_groups_) return 0;
    return groups * PackedBound(gemm_, s.kernel_h * s.kernel_w * s.filter_in, s.out_c / groups);
  }

  const float* Weights(const KernelContext& ctx, const ConvSizes& s, ScratchPieces& pieces) const {
    const int64_t groups = s.in_c / s.filter_in;
    if (groups == packed_groups_) return reinterpret_cast<const float*>(packed_.data());
    float* packed = pieces.Floats(PackScratch(s));
    PackGroups(gemm_, ctx.in(1).as<float>(), groups, s.kernel_h * s.kernel_w * s.filter_in,
               s.out_c / groups, packed);
    return packed;
  }

  // What the epilogue adds; null: nothing.
  struct Added {
    const float *bias, *residual;
  };

  absl::Status Multiply(const ConvSizes& s, const float* image, const float* weights,
                        const Added& added, float* out, int64_t rows, ThreadPool& pool) const {
    const int64_t groups = s.in_c / s.filter_in;
    const int64_t pixel = s.needs_padding() ? s.in_c : s.in_pixel, row_floats = s.padded_w * pixel;
    GemmTask task;
    task.a = {image, s.out_w, s.stride_w * pixel, s.stride_h * row_floats};
    if (IsMatrix(s)) task.a = {image, INT64_MAX, pixel, 0};
    if (groups == 1 && s.dilation_w == 1 && pixel == s.in_c) {  // a filter row lies in one piece
      task.runs = {s.kernel_w * s.in_c, s.kernel_h, 1, 0, s.dilation_h * row_floats};
    } else {
      task.runs = {s.filter_in, s.kernel_h * s.kernel_w, s.kernel_w, s.dilation_w * pixel,
                   s.dilation_h * row_floats};
    }
    task.n = s.out_c / groups;
    task.ldc = s.out_pixel;
    task.activation = epilogue_.activation;
    task.alpha = epilogue_.alpha;
    task.b = weights;
    task.bias = added.bias;
    task.residual = added.residual;
    task.c = out;
    return RunGroups(gemm_, task, groups, s.filter_in, rows, pool);
  }

  const ops::ConvNd window_;
  const Epilogue epilogue_;
  const GemmKernels gemm_;
  const BiasOperand bias_;
  int64_t packed_groups_ = 0;  // 0: not constant
  bool groups_known_ = false;
  AlignedBuffer packed_;
};

using Made = absl::StatusOr<std::unique_ptr<Kernel>>;

// What `--gemm` asks for; empty: whatever costs least.
const char* WantedRoute(GemmBackend backend) {
  switch (backend) {
    case GemmBackend::kAuto:
      return "";
    case GemmBackend::kNative:
      return "gemm";
    case GemmBackend::kOpenBlas:
      return "openblas";
    case GemmBackend::kReference:
      return "reference";
  }
  return "";
}

// Calls of the candidates end before this file's MakeConv returns.
Made MakeConv(const KernelArgs& args) {
  const Epilogue epilogue = EpilogueOf(args.node.attrs);
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd window, ops::ConvNdOf(args.node.attrs, 2));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  const Candidate plain = {"reference", std::nullopt, false,
                           [&]() -> Made { return MakePlainConv(args, window, epilogue, false); }};
  if (args.inputs[0].type.dtype != DType::kFloat32) return MakeChosen(args, {plain});
  const std::optional<double> direct = DirectConvCost(args, window);
  std::vector<Candidate> candidates;
  candidates.push_back({"gemm", direct, true, [&]() -> Made {
                          return std::make_unique<NativeConv>(args, window, epilogue);
                        }});
  // Its sums change with the batch size, and so do its bits.
  candidates.push_back(
      {"openblas", direct, false, [&]() -> Made { return MakeBlasConv(args, window, epilogue); }});
  candidates.push_back(plain);
  const std::optional<FftConvPlan> fft =
      args.options.conv.fft ? PlanFftConv(args, window) : std::nullopt;
  if (fft.has_value()) {
    candidates.push_back({"fft", fft->cost_us, true,
                          [&]() -> Made { return MakeFftConv(args, window, epilogue, *fft); }});
  }
  if (FitsSmallGroups(args, window, epilogue)) {
    candidates.push_back({"groups", SmallGroupsCost(args, window), true,
                          [&]() -> Made { return MakeSmallGroups(args, window, epilogue); }});
  }
  for (const WinogradPlan& plan : PlanWinogradConv(args, window)) {
    candidates.push_back({plan.Name(), plan.cost_us, true, [&args, &window, &epilogue, plan]() {
                            return MakeWinogradConv(args, window, epilogue, plan);
                          }});
  }
  return MakeChosen(args, candidates, WantedRoute(args.options.gemm));
}

const KernelRegistrar kConv2D("Conv2D", DeviceKind::kCpu,
                              {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                               DType::kInt32},
                              MakeConv, {.options_key = ConvOptionsKey});

}  // namespace

std::string ConvOptionsKey(const KernelOptions& options) {
  const ConvOptions& conv = options.conv;
  return absl::StrCat(conv.fft ? "fft " : "direct ", conv.fft_growth, "|",
                      conv.weights_stay_cached);
}

}  // namespace floe::kernels
