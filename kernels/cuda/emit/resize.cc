// ResizeBilinear and ResizeNearestNeighbor.
#include "kernels/cpu/image/resize.h"

#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/image_args.h"

namespace floe::cuda {
namespace {

void EmitResize(KernelId kernel, bool align_corners, bool half_pixel, const DeviceAddresses& at,
                std::vector<Launch>* launches) {
  const Shape &in = at.in(0).shape, &out = at.out(0).shape;
  if (out.elements() == 0) return;
  ResizeArgs args{};
  args.in = at.in(0).data;
  args.out = at.out(0).data;
  args.units = out.elements();
  args.unit_bytes = static_cast<int32_t>(DTypeSize(at.in(0).dtype));
  args.align_corners = align_corners ? 1 : 0;
  args.half_pixel = half_pixel ? 1 : 0;
  args.in_height = static_cast<int32_t>(in.dim(1));
  args.in_width = static_cast<int32_t>(in.dim(2));
  args.channels = DividerOf(out.dim(3));
  args.width = DividerOf(out.dim(2));
  args.height = DividerOf(out.dim(1));
  args.row_scale = kernels::ScaleOf(in.dim(1), out.dim(1), align_corners);
  args.column_scale = kernels::ScaleOf(in.dim(2), out.dim(2), align_corners);
  launches->push_back(Launch::Of(kernel, {Blocks(args.units, kImageThreads)}, args));
}

template <bool kNearest>
absl::StatusOr<std::unique_ptr<Kernel>> MakeResize(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, 4));
  for (int d = 1; d < args.inputs[0].type.shape.rank(); ++d) {
    // An image without pixels fails the run, which a launch cannot.
    const Dim& dim = args.inputs[0].type.shape.dim(d);
    if (!dim.concrete() || dim.size() == 0)
      return absl::UnimplementedError(absl::StrCat(args.node.op->name, " on a GPU of images of ",
                                                   args.inputs[0].type.shape.ToString()));
  }
  return MakeEmitKernel([align_corners = args.node.attrs.Bool("align_corners"),
                         half_pixel = args.node.attrs.Bool("half_pixel_centers")](
                            const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitResize(kNearest ? KernelId::resize_nearest : KernelId::resize_bilinear, align_corners,
               half_pixel, at, launches);
  });
}

bool RegisterResizes() {
  RegisterEmitter<MakeResize<true>>({"ResizeNearestNeighbor"}, {});
  RegisterEmitter<MakeResize<false>>({"ResizeBilinear"}, {DType::kFloat32});
  return true;
}
const bool kResizesRegistered = RegisterResizes();

}  // namespace
}  // namespace floe::cuda
