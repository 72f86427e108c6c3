#include "kernels/cpu/conv/depthwise.h"

#include "absl/strings/str_cat.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Multiply-adds: worth other threads; between two looks at the watch.
constexpr int64_t kDepthwiseSerialBelow = 200'000, kLookAfter = 4'000'000;

class NativeDepthwise final : public Kernel {
 public:
  // `group`: input channels of an output; not 1: of a Conv2D.
  NativeDepthwise(const ops::ConvNd& window, const Epilogue& epilogue, int64_t group)
      : window_(window), epilogue_(epilogue), group_(group), row_(PickDepthwiseRow()) {}

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvSizes s(window_, inputs[0], inputs[1], outputs[0]);
    return ScratchPieces::Bytes({ImageScratch(s)});
  }
  std::string Route() const override {
    return absl::StrCat(group_ == 1 ? "depthwise " : "small groups, ", IsaName());
  }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes s(window_, ctx);
    FLOE_RETURN_IF_ERROR(CheckConv(s, ctx, epilogue_, group_ == 1));
    if (s.out_floats() == 0) return absl::OkStatus();
    ScratchPieces pieces(ctx.scratch);
    float* copy = pieces.Floats(ImageScratch(s));
    const float* in = ctx.in(0).as<float>();
    float* out = ctx.out(0).as<float>();
    DepthwiseTask task{nullptr,
                       ctx.in(1).as<float>(),
                       BiasOf<float>(ctx, epilogue_),
                       s.in_h,
                       s.in_w,
                       s.out_c,
                       s.kernel_h,
                       s.kernel_w,
                       s.stride_h,
                       s.stride_w,
                       s.dilation_h,
                       s.dilation_w,
                       s.pad_top,
                       s.pad_left,
                       s.out_w,
                       epilogue_,
                       group_};
    for (int64_t i = 0; i < s.images; ++i, in += s.image_floats(), out += s.out_floats()) {
      task.image = in;
      if (copy != nullptr) {
        Spread(s, in, copy);
        task.image = copy;
      }
      FLOE_RETURN_IF_ERROR(RunImage(s, task, out, *ctx.pool));
    }
    return absl::OkStatus();
  }

 private:
  int64_t ImageScratch(const ConvSizes& s) const {
    return group_ == 1 && s.filter_out != 1 ? ScratchFloats({s.in_h, s.in_w, s.out_c}) : 0;
  }

  // The image with each channel repeated for every output channel made from it.
  static void Spread(const ConvSizes& s, const float* image, float* to) {
    for (const float* end = image + s.image_floats(); image != end; ++image)
      to = std::fill_n(to, s.filter_out, *image);
  }

  absl::Status RunImage(const ConvSizes& s, const DepthwiseTask& task, float* out,
                        ThreadPool& pool) const {
    const int64_t row_floats = s.out_w * s.out_c;
    const int64_t products = s.kernel_h * s.kernel_w * group_;
    const int64_t row_products = std::max<int64_t>(row_floats * products, 1);
    const bool serial = s.out_floats() * products < kDepthwiseSerialBelow;
    const int64_t chunk =
        serial ? s.out_h : (s.out_h + 4 * pool.threads() - 1) / (4 * pool.threads());
    if (chunk == 0) return absl::OkStatus();
    const int64_t rows = std::clamp<int64_t>(kLookAfter / row_products, 1, chunk);
    RunWatch watch;
    pool.ParallelFor((s.out_h + chunk - 1) / chunk, [&](int64_t i) {
      const int64_t end = std::min((i + 1) * chunk, s.out_h);
      for (int64_t y = i * chunk; y < end; ++y) {
        if ((y - i * chunk) % rows == 0 && watch.Stopped()) return;
        row_(task, y, out + y * row_floats);
      }
    });
    return watch.status();
  }

  const ops::ConvNd window_;
  const Epilogue epilogue_;
  const int64_t group_;
  const DepthwiseRowFunction row_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeDepthwise(const KernelArgs& args) {
  const Epilogue epilogue = EpilogueOf(args.node.attrs);
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd window, ops::ConvNdOf(args.node.attrs, 2));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  if (args.inputs[0].type.dtype != DType::kFloat32 ||
      args.options.gemm == GemmBackend::kReference) {
    return MakePlainConv(args, window, epilogue, true);
  }
  return std::make_unique<NativeDepthwise>(window, epilogue, 1);
}

FLOE_REGISTER_KERNEL(DepthwiseConv2dNative, kCpu, MakeDepthwise, DType::kFloat32, DType::kFloat64,
                     DType::kFloat16, DType::kBFloat16, DType::kInt32);

int64_t GroupOf(const KernelArgs& args) { return args.inputs[1].type.shape.dim(2).size(); }

}  // namespace

bool FitsSmallGroups(const KernelArgs& args, const ops::ConvNd& window, const Epilogue& epilogue) {
  const SymShape &image = args.inputs[0].type.shape, &filter = args.inputs[1].type.shape;
  if (args.inputs[0].type.dtype != DType::kFloat32 || epilogue.has_residual() ||
      !filter.concrete() || filter.rank() != 4 || !image.rank_known())
    return false;
  const Dim channels = image.dim(window.channel_axis());
  const int64_t group = GroupOf(args), lanes = PickGemm().lanes;
  return channels == filter.dim(3) && channels.size() % lanes == 0 && channels.size() > group &&
         group > 1 && group <= lanes && (group & (group - 1)) == 0;
}

std::unique_ptr<Kernel> MakeSmallGroups(const KernelArgs& args, const ops::ConvNd& window,
                                        const Epilogue& epilogue) {
  return std::make_unique<NativeDepthwise>(window, epilogue, GroupOf(args));
}

}  // namespace floe::kernels
