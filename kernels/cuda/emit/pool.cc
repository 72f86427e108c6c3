// MaxPool and AvgPool of images and volumes, channels last.
#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/image_args.h"
#include "model/ops/window.h"

namespace floe::cuda {
namespace {

void EmitPool(const ops::Window& w, bool maximum, const DeviceAddresses& at,
              std::vector<Launch>* launches) {
  const Shape &in = at.in(0).shape, &out = at.out(0).shape;
  if (out.elements() == 0) return;
  PoolArgs args{};
  args.x = at.in(0).as<float>();
  args.y = at.out(0).as<float>();
  args.elements = out.elements();
  args.maximum = maximum ? 1 : 0;
  const int spatial = static_cast<int>(w.kernel.size()), skip = 3 - spatial;
  args.channels = DividerOf(in.dim(spatial + 1));
  for (int d = 0; d < 3; ++d) {
    args.out[d] = DividerOf(1);
    args.in[d] = args.kernel[d] = args.stride[d] = 1;
  }
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t size = in.dim(w.axis(i)), places = out.dim(w.axis(i));
    args.in[skip + i] = static_cast<int32_t>(size);
    args.out[skip + i] = DividerOf(places);
    args.kernel[skip + i] = static_cast<int32_t>(w.kernel[k]);
    args.stride[skip + i] = static_cast<int32_t>(w.stride[k]);
    args.low[skip + i] = static_cast<int32_t>(
        ops::PadLow(size, places, w.kernel[k], w.stride[k], w.pads[k], spatial == 3));
  }
  launches->push_back(Launch::Of(KernelId::pool, {Blocks(args.elements, kImageThreads)}, args));
}

template <bool kMaximum, int kSpatial>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(ops::Window window, ops::WindowOf(args.node.attrs, kSpatial));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  return MakeEmitKernel([window](const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitPool(window, kMaximum, at, launches);
  });
}

bool RegisterPools() {
  RegisterEmitter<MakePool<true, 2>>({"MaxPool"}, {DType::kFloat32});
  RegisterEmitter<MakePool<true, 3>>({"MaxPool3D"}, {DType::kFloat32});
  RegisterEmitter<MakePool<false, 2>>({"AvgPool"}, {DType::kFloat32});
  RegisterEmitter<MakePool<false, 3>>({"AvgPool3D"}, {DType::kFloat32});
  return true;
}
const bool kPoolsRegistered = RegisterPools();

}  // namespace
}  // namespace floe::cuda
