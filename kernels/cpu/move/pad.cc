// Pad, PadV2 and MirrorPad.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// [low, high] of every axis, checked against the shapes.
absl::Status ReadPads(const KernelContext& ctx, IntList* pads) {
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), pads));
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (static_cast<int>(pads->size()) != 2 * in.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("paddings has ", pads->size() / 2, " pairs, input has rank ", in.rank()));
  }
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t low = (*pads)[2 * i], high = (*pads)[2 * i + 1];
    if (low < 0 || high < 0 || low + in.dim(i) + high != out.dim(i)) {
      return absl::InvalidArgumentError(absl::StrCat("paddings ", low, " and ", high, " of axis ",
                                                     i, " do not make ", out.ToString(), " of ",
                                                     in.ToString()));
    }
  }
  return absl::OkStatus();
}

void CopyCentre(const KernelContext& ctx, const IntList& pads) {
  const Shape& in = ctx.in(0).shape;
  const IntList from = DenseStrides(in), to = DenseStrides(ctx.out(0).shape);
  Grid grid;
  int64_t start = 0;
  for (int i = 0; i < in.rank(); ++i) {
    grid.Add(in.dim(i), from[i], to[i]);
    start += pads[2 * i] * to[i];
  }
  CopyGrid(std::move(grid), ctx.in(0).dtype, ctx.in(0).data, ElementAt(ctx.out(0), start),
           ctx.pool);
}

// Fills what lies in front of the input and behind it, axis by axis inwards. `last`: the last axis
// that is padded.
void FillPads(const KernelContext& ctx, const IntList& pads, const IntList& strides,
              const void* value, int last, int axis, int64_t start) {
  if (axis > last) return;
  const TensorView& out = ctx.out(0);
  const int64_t low = pads[2 * axis], size = ctx.in(0).shape.dim(axis), step = strides[axis];
  const auto fill = [&](int64_t from, int64_t count) {
    FillElements(out.dtype, value, ElementAt(out, start + from * step), count * step);
  };
  fill(0, low);
  for (int64_t i = 0; i < size && axis < last; ++i)
    FillPads(ctx, pads, strides, value, last, axis + 1, start + (low + i) * step);
  fill(low + size, pads[2 * axis + 1]);
}

class PadKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    IntList pads;
    FLOE_RETURN_IF_ERROR(ReadPads(ctx, &pads));
    const TensorView& out = ctx.out(0);
    if (out.elements() == 0) return absl::OkStatus();
    static constexpr char kZero[16] = {};
    const std::string empty;
    const void* value = out.dtype == DType::kString ? static_cast<const void*>(&empty) : kZero;
    if (ctx.inputs.size() > 2) value = ctx.in(2).data;
    int last = out.shape.rank() - 1;
    while (last >= 0 && pads[2 * last] == 0 && pads[2 * last + 1] == 0) --last;
    FillPads(ctx, pads, DenseStrides(out.shape), value, last, 0, 0);
    CopyCentre(ctx, pads);
    return absl::OkStatus();
  }
};

// Axis by axis outwards: what is complete so far is mirrored into the pads of the next axis.
class MirrorPadKernel : public Kernel {
 public:
  explicit MirrorPadKernel(bool reflect) : skip_(reflect ? 1 : 0) {}

  absl::Status Run(const KernelContext& ctx) const override {
    IntList pads;
    FLOE_RETURN_IF_ERROR(ReadPads(ctx, &pads));
    const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
    if (out.elements() == 0) return absl::OkStatus();
    for (int i = 0; i < in.rank(); ++i) {
      if (std::max(pads[2 * i], pads[2 * i + 1]) > in.dim(i) - skip_) {
        return absl::InvalidArgumentError(absl::StrCat("the padding of axis ", i, " exceeds what ",
                                                       in.ToString(), " can mirror"));
      }
    }
    CopyCentre(ctx, pads);
    const IntList strides = DenseStrides(out);
    for (int axis = 0; axis < in.rank(); ++axis) {
      Grid slice;
      int64_t start = 0;
      for (int i = 0; i < in.rank(); ++i) {
        if (i == axis) continue;
        slice.Add(i < axis ? out.dim(i) : in.dim(i), strides[i], strides[i]);
        if (i > axis) start += pads[2 * i] * strides[i];
      }
      const auto copy = [&](int64_t from, int64_t to) {
        CopyGrid(slice, ctx.out(0).dtype, ElementAt(ctx.out(0), start + from * strides[axis]),
                 ElementAt(ctx.out(0), start + to * strides[axis]), ctx.pool);
      };
      const int64_t first = pads[2 * axis], last = first + in.dim(axis) - 1;
      for (int64_t p = 0; p < pads[2 * axis]; ++p) copy(first + skip_ + p, first - 1 - p);
      for (int64_t p = 0; p < pads[2 * axis + 1]; ++p) copy(last - skip_ - p, last + 1 + p);
    }
    return absl::OkStatus();
  }

 private:
  int64_t skip_;  // 1 when the border itself is not repeated
};

absl::StatusOr<std::unique_ptr<Kernel>> MakePad(const KernelArgs&) {
  return std::make_unique<PadKernel>();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeMirrorPad(const KernelArgs& args) {
  return std::make_unique<MirrorPadKernel>(args.node.attrs.String("mode", "REFLECT") == "REFLECT");
}
FLOE_REGISTER_KERNEL(Pad, kCpu, MakePad);
FLOE_REGISTER_KERNEL(PadV2, kCpu, MakePad);
FLOE_REGISTER_KERNEL(MirrorPad, kCpu, MakeMirrorPad);

}  // namespace
}  // namespace floe::kernels
