// DepthwiseConv2dNative.
#include <vector>

#include "base/status.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cuda/emit/conv.h"

namespace floe::cuda {
namespace {

class Depthwise final : public DeviceKernel {
 public:
  Depthwise(const ops::ConvNd& conv, const Epilogue& epilogue) : conv_(conv), epilogue_(epilogue) {}

  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return i == 0;
  }
  bool WritesSpacedLines() const override { return !epilogue_.has_residual(); }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    if (addresses.out(0).elements() == 0) return;
    const kernels::ConvSizes s(conv_, addresses);
    DepthwiseArgs args = {};
    args.x = addresses.in(0).as<float>();
    args.x_pixel = s.in_pixel;
    args.x_image = s.image_floats();
    args.weights = addresses.in(1).as<float>();
    args.y = addresses.out(0).as<float>();
    args.y_pixel = s.out_pixel;
    args.pixels = s.images * s.out_pixels();
    const int64_t numbers[6][2] = {
        {s.in_h, s.in_w},         {s.out_h, s.out_w},           {s.kernel_h, s.kernel_w},
        {s.stride_h, s.stride_w}, {s.dilation_h, s.dilation_w}, {s.pad_top, s.pad_left}};
    int32_t(*const to[6])[2] = {&args.in,     &args.out,      &args.taps,
                                &args.stride, &args.dilation, &args.low};
    for (int i = 0; i < 6; ++i) {
      for (int d = 0; d < 2; ++d) (*to[i])[d] = static_cast<int32_t>(numbers[i][d]);
    }
    args.channels = static_cast<int32_t>(s.in_c);
    args.multiplier = static_cast<int32_t>(s.filter_out);
    args.epilogue = EpilogueArgsOf(addresses, epilogue_);
    args.vectors = s.filter_out == 1 && s.in_c % 4 == 0 && s.in_pixel % 4 == 0 && Aligned(args.x) &&
                   Aligned(args.weights);
    const int64_t parts = args.pixels * s.out_c / (args.vectors ? 4 : 1);
    launches->push_back(Launch::Of(KernelId::depthwise, {Blocks(parts, 256), 1, 1}, args));
  }

 private:
  const ops::ConvNd conv_;
  const Epilogue epilogue_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeDepthwise(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd conv, ops::ConvNdOf(args.node.attrs, 2));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(conv.channels_first));
  return std::make_unique<Depthwise>(conv, EpilogueOf(args.node.attrs));
}

bool ComputesDepthwise(const KernelArgs& args) {
  const auto conv = ops::ConvNdOf(args.node.attrs, 2);
  if (!conv.ok() || conv->channels_first || !SmallNumbers(*conv)) return false;
  const SymShape &x = args.inputs[0].type.shape, &filter = args.inputs[1].type.shape;
  if (!KnownInside(x) || !filter.concrete() || x.rank() != 4) return false;
  return Same(x.dim(3), filter.dim(2)) &&
         BiasFits(args, EpilogueOf(args.node.attrs),
                  Dim(filter.dim(2).size() * filter.dim(3).size()));
}

const KernelRegistrar kDepthwise("DepthwiseConv2dNative", DeviceKind::kCuda, {DType::kFloat32},
                                 MakeDepthwise, {.computes = ComputesDepthwise});

}  // namespace
}  // namespace floe::cuda
