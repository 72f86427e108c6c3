// A pointwise convolution, a depthwise one and often another pointwise one, block by block: what
// one computes for the next stays in the cache. Every stage computes the bits that it has as a step
// of its own.
#include "model/ops/conv_chain.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/depthwise.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

// Between the stages: so many that starting threads for each block, and reading the weights anew,
// costs little. With half a MiB two threads were 8 % slower, with 4 MiB one thread 4 %.
constexpr int64_t kBlockFloats = 1 << 19;
constexpr int64_t kSerialBelow = 500'000;  // multiply-adds that are not worth another thread

// A convolution of one tap over every pixel: a matrix product.
class Pointwise {
 public:
  Pointwise(const ops::ConvStage& stage, const KernelArgs& chain)
      : epilogue_(stage.epilogue), gemm_(PickGemm()), bias_(chain, epilogue_, gemm_) {
    const Tensor& filter = chain.inputs[stage.first_input].constant;
    k_ = filter.shape().dim(2);
    n_ = filter.shape().dim(3);
    packed_ = PackedMemory(gemm_.PackedFloats(k_, n_) * sizeof(float));
    PackGemm(gemm_, filter.as<float>(), n_, 1, k_, n_, reinterpret_cast<float*>(packed_.data()));
  }

  int64_t outputs() const { return n_; }
  size_t PackedBytes() const { return packed_.size(); }

  // `pixels` of `image` [pixels][inputs] into `out` [pixels][outputs]; `residual` has its form.
  absl::Status Run(const KernelContext& ctx, const float* image, int64_t pixels,
                   const float* residual, float* out) const {
    ScratchPieces none(nullptr);
    GemmTask task;
    task.a = {image, INT64_MAX, k_, 0};
    task.runs.length = k_;
    task.b = reinterpret_cast<const float*>(packed_.data());
    task.bias = bias_.Padded(ctx, n_, none);
    task.residual = residual;
    task.n = n_;
    task.c = out;
    task.ldc = n_;
    task.activation = epilogue_.activation;
    task.alpha = epilogue_.alpha;
    return RunGemm(gemm_, task, pixels, *ctx.pool);
  }

 private:
  Epilogue epilogue_;
  GemmKernels gemm_;
  BiasOperand bias_;
  int64_t k_, n_;
  AlignedBuffer packed_;
};

class ConvChain final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs& args) {
    auto chain = std::make_unique<ConvChain>();
    for (const ops::ConvStage& stage : ops::ConvStagesOf(args.node)) {
      for (int i = stage.first_input; i < stage.first_input + stage.inputs; ++i) {
        if (i != stage.epilogue.residual && !args.inputs[i].has_constant())
          return absl::InternalError("weights of a chain that are not constant");
      }
      if (stage.depthwise()) {
        FLOE_RETURN_IF_ERROR(chain->SetDepthwise(stage, args));
        continue;
      }
      chain->residual_input_ = stage.epilogue.residual;  // only the last may have one
      (chain->expand_ ? chain->project_ : chain->expand_).emplace(stage, args);
    }
    return chain;
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const Blocks b = BlocksOf(SizesOf(inputs[0], outputs[0]));
    return ScratchPieces::Bytes({b.before_floats, b.behind_floats});
  }
  std::string Route() const override { return absl::StrCat("rows, ", NativeRoute(PickGemm())); }
  bool NeedsInput(int i) const override { return i == 0 || i == residual_input_; }
  size_t PackedBytes() const override {
    return expand_->PackedBytes() + filter_.size() + (project_ ? project_->PackedBytes() : 0);
  }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes s = SizesOf(ctx.in(0).shape, ctx.out(0).shape);
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const Blocks blocks = BlocksOf(s);
    ScratchPieces pieces(ctx.scratch);
    const Room room{pieces.Floats(blocks.before_floats), pieces.Floats(blocks.behind_floats)};
    for (int64_t i = 0; i < s.images; i += blocks.images) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      const int64_t images = std::min(blocks.images, s.images - i);
      if (blocks.rows == 0) {
        FLOE_RETURN_IF_ERROR(RunImages(ctx, s, room, i, images));
      } else {
        FLOE_RETURN_IF_ERROR(RunRows(ctx, s, room, i, blocks.rows));
      }
    }
    return absl::OkStatus();
  }

 private:
  // What is computed at a time: some images, or some output rows of one. The floats between the
  // stages are those of the blocks, however many images there are.
  struct Blocks {
    int64_t images = 1, rows = 0;                  // no rows: whole images
    int64_t before_floats = 0, behind_floats = 0;  // in front of the depthwise stage, behind it
  };
  struct Room {
    float *before, *behind;  // no `behind` where nothing is projected
  };

  absl::Status SetDepthwise(const ops::ConvStage& stage, const KernelArgs& args) {
    epilogue_ = stage.epilogue;
    FLOE_ASSIGN_OR_RETURN(window_, ops::ConvNdOf(stage.node.attrs, 2));
    const Tensor& filter = args.inputs[stage.first_input].constant;
    filter_shape_ = filter.shape();
    filter_ = AlignedBuffer(filter.bytes());
    std::memcpy(filter_.data(), filter.data(), filter.bytes());
    bias_.emplace(args, epilogue_, PickGemm());
    return absl::OkStatus();
  }

  // Of the depthwise stage.
  ConvSizes SizesOf(const Shape& image, const Shape& out) const {
    const int64_t channels = filter_shape_.dim(2);
    return {window_, Shape({image.dim(0), image.dim(1), image.dim(2), channels}), filter_shape_,
            Shape({out.dim(0), out.dim(1), out.dim(2), channels})};
  }

  Blocks BlocksOf(const ConvSizes& s) const {
    Blocks blocks;
    const int64_t before = s.in_w * s.in_c, behind = project_ ? s.out_w * s.out_c : 0;
    const int64_t image = s.in_h * before + s.out_h * behind;
    if (image <= kBlockFloats) {
      blocks.images = kBlockFloats / std::max<int64_t>(image, 1);
      blocks.before_floats = ScratchFloats({blocks.images, s.in_h, before});
      blocks.behind_floats = ScratchFloats({blocks.images, s.out_h, behind});
      return blocks;
    }
    const int64_t span = (s.kernel_h - 1) * s.dilation_h + 1;
    const int64_t more = s.stride_h * before + behind, first = span * before + behind;
    blocks.rows = std::clamp<int64_t>(1 + (kBlockFloats - first) / more, 1, s.out_h);
    blocks.before_floats = ScratchFloats({(blocks.rows - 1) * s.stride_h + span, before});
    blocks.behind_floats = ScratchFloats({blocks.rows, behind});
    return blocks;
  }

  const float* Residual(const KernelContext& ctx, int64_t pixel) const {
    return residual_input_ < 0 ? nullptr
                               : ctx.in(residual_input_).as<float>() + pixel * project_->outputs();
  }

  DepthwiseTask TaskOf(const KernelContext& ctx, const ConvSizes& s) const {
    ScratchPieces none(nullptr);
    DepthwiseTask task{};
    task.filter = reinterpret_cast<const float*>(filter_.data());
    task.bias = bias_->Padded(ctx, s.out_c, none);
    task.in_h = s.in_h;
    task.in_w = s.in_w;
    task.channels = s.out_c;
    task.kernel_h = s.kernel_h;
    task.kernel_w = s.kernel_w;
    task.stride_h = s.stride_h;
    task.stride_w = s.stride_w;
    task.dilation_h = s.dilation_h;
    task.dilation_w = s.dilation_w;
    task.pad_top = s.pad_top;
    task.pad_left = s.pad_left;
    task.out_w = s.out_w;
    task.epilogue = epilogue_;
    return task;
  }

  // Calls body(line) for the lines of a depthwise result.
  template <class Body>
  static void ForLines(const KernelContext& ctx, const ConvSizes& s, int64_t lines,
                       const Body& body) {
    const int64_t products = std::max<int64_t>(s.out_w * s.out_c * s.kernel_h * s.kernel_w, 1);
    ParallelRange(ctx.pool, lines, 1 + kSerialBelow / products, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) body(line);
    });
  }

  absl::Status RunImages(const KernelContext& ctx, const ConvSizes& s, const Room& room,
                         int64_t first, int64_t images) const {
    const int64_t in_pixels = s.in_h * s.in_w, line = s.out_w * s.out_c;
    const float* image = ctx.in(0).as<float>() + first * in_pixels * ctx.in(0).shape.dim(3);
    float* out = ctx.out(0).as<float>() + first * s.out_pixels() * ctx.out(0).shape.dim(3);
    FLOE_RETURN_IF_ERROR(expand_->Run(ctx, image, images * in_pixels, nullptr, room.before));
    float* filtered = project_ ? room.behind : out;
    const DepthwiseTask task = TaskOf(ctx, s);
    ForLines(ctx, s, images * s.out_h, [&](int64_t l) {
      DepthwiseTask own = task;
      own.image = room.before + l / s.out_h * s.image_floats();
      row_(own, l % s.out_h, filtered + l * line);
    });
    if (!project_) return absl::OkStatus();
    return project_->Run(ctx, filtered, images * s.out_pixels(),
                         Residual(ctx, first * s.out_pixels()), out);
  }

  // Output rows of one image, `step` at a time. Image rows that the next ones read too are kept.
  absl::Status RunRows(const KernelContext& ctx, const ConvSizes& s, const Room& room, int64_t i,
                       int64_t step) const {
    const int64_t in_c = ctx.in(0).shape.dim(3), out_c = ctx.out(0).shape.dim(3);
    const float* image = ctx.in(0).as<float>() + i * s.in_h * s.in_w * in_c;
    const int64_t first_pixel = i * s.out_pixels();
    const int64_t span = (s.kernel_h - 1) * s.dilation_h + 1, row = s.in_w * s.in_c;
    DepthwiseTask task = TaskOf(ctx, s);
    task.image = room.before;
    int64_t begin = 0, end = 0;  // image rows in room.before
    for (int64_t y = 0; y < s.out_h; y += step) {
      const int64_t rows = std::min(step, s.out_h - y), top = y * s.stride_h - s.pad_top;
      const int64_t need_begin = std::clamp<int64_t>(top, 0, s.in_h),
                    need_end = std::clamp<int64_t>(top + (rows - 1) * s.stride_h + span, need_begin,
                                                   s.in_h);
      const int64_t kept = std::max<int64_t>(end - need_begin, 0);
      if (kept > 0)
        std::memmove(room.before, room.before + (need_begin - begin) * row,
                     kept * row * sizeof(float));
      begin = need_begin;
      end = std::max(need_end, need_begin + kept);
      FLOE_RETURN_IF_ERROR(expand_->Run(ctx, image + (begin + kept) * s.in_w * in_c,
                                        (end - begin - kept) * s.in_w, nullptr,
                                        room.before + kept * row));
      task.in_h = need_end - need_begin;
      task.pad_top = need_begin - top;
      const int64_t pixel = first_pixel + y * s.out_w;
      float* out = ctx.out(0).as<float>() + pixel * out_c;
      float* filtered = project_ ? room.behind : out;
      ForLines(ctx, s, rows, [&](int64_t l) { row_(task, l, filtered + l * s.out_w * s.out_c); });
      if (project_)
        FLOE_RETURN_IF_ERROR(
            project_->Run(ctx, filtered, rows * s.out_w, Residual(ctx, pixel), out));
    }
    return absl::OkStatus();
  }

  std::optional<Pointwise> expand_, project_;  // an expand stage is always there
  ops::ConvNd window_;
  Epilogue epilogue_;
  Shape filter_shape_;
  AlignedBuffer filter_;
  std::optional<BiasOperand> bias_;
  int residual_input_ = -1;  // -1: none
  const DepthwiseRowFunction row_ = PickDepthwiseRow();
};

// Its stages have the bits of the native convolutions, and of no others.
bool ComputesChain(const KernelArgs& args) {
  return args.options.gemm == GemmBackend::kAuto || args.options.gemm == GemmBackend::kNative;
}

const KernelRegistrar kConvChain("ConvChain", DeviceKind::kCpu, {DType::kFloat32}, ConvChain::Make,
                                 {.computes = ComputesChain});

}  // namespace
}  // namespace floe::kernels
