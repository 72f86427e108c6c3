// Pack, ConcatV2, Unpack, Split: every part is a band of the whole, seen as [outer, along * inner].
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/grid_copy.h"

namespace floe::kernels {
namespace {

int64_t Product(const Shape& shape, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= shape.dim(i);
  return n;
}

// Copies band [at, at + width) of each of `outer` lines of `whole_width` elements to or from a
// dense part.
void CopyBand(const KernelContext& ctx, DType dtype, void* whole, int64_t at, int64_t whole_width,
              void* part, int64_t width, int64_t outer, bool into_whole) {
  void* band = static_cast<char*>(whole) + at * static_cast<int64_t>(ElementBytes(dtype));
  Grid grid;
  if (into_whole) {
    grid.Add(outer, width, whole_width);
    grid.Add(width, 1, 1);
    CopyGrid(std::move(grid), dtype, part, band, ctx.pool);
  } else {
    grid.Add(outer, whole_width, width);
    grid.Add(width, 1, 1);
    CopyGrid(std::move(grid), dtype, band, part, ctx.pool);
  }
}

// `parts` side by side along `axis` of the whole; their sizes follow from their elements.
absl::Status CopyParts(const KernelContext& ctx, const TensorView& whole,
                       absl::Span<const TensorView> parts, int axis, bool into_whole) {
  const int64_t outer = Product(whole.shape, 0, axis),
                width = Product(whole.shape, axis, whole.shape.rank());
  if (outer == 0 || width == 0) return absl::OkStatus();
  int64_t at = 0;
  for (const TensorView& part : parts) {
    const int64_t part_width = part.elements() / outer;
    if (at + part_width > width) return absl::InvalidArgumentError("the parts exceed the whole");
    if (part.data != nullptr) {
      CopyBand(ctx, whole.dtype, whole.data, at, width, part.data, part_width, outer, into_whole);
    }
    at += part_width;
  }
  if (at == width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the parts take ", at, " of the ", width, " elements along axis ", axis));
}

class PackKernel : public Kernel {
 public:
  explicit PackKernel(int64_t axis) : axis_(axis) {}
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, ctx.out(0).shape.rank()));
    return CopyParts(ctx, ctx.out(0), ctx.inputs, axis, true);
  }

 private:
  int64_t axis_;
};

class UnpackKernel : public Kernel {
 public:
  explicit UnpackKernel(int64_t axis) : axis_(axis) {}
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, ctx.in(0).shape.rank()));
    return CopyParts(ctx, ctx.in(0), ctx.outputs, axis, false);
  }

 private:
  int64_t axis_;
};

template <class K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWithAxis(const KernelArgs& args) {
  return std::make_unique<K>(args.node.attrs.Int("axis"));
}
FLOE_REGISTER_KERNEL(Pack, kCpu, MakeWithAxis<PackKernel>);
FLOE_REGISTER_KERNEL(Unpack, kCpu, MakeWithAxis<UnpackKernel>);

template <bool kAxisFirst>
class ConcatKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int64_t axis,
                          ReadInt(kAxisFirst ? ctx.inputs.front() : ctx.inputs.back()));
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, ctx.out(0).shape.rank()));
    return CopyParts(ctx, ctx.out(0), ctx.inputs.subspan(kAxisFirst ? 1 : 0, ctx.inputs.size() - 1),
                     along, true);
  }
};

template <int kData, int kAxis>
class SplitKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int64_t axis, ReadInt(ctx.in(kAxis)));
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, ctx.in(kData).shape.rank()));
    return CopyParts(ctx, ctx.in(kData), ctx.outputs, along, false);
  }
};

template <class K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeJoin(const KernelArgs&) {
  return std::make_unique<K>();
}
using Split = SplitKernel<1, 0>;
using SplitV = SplitKernel<0, 2>;
FLOE_REGISTER_KERNEL(ConcatV2, kCpu, MakeJoin<ConcatKernel<false>>);
FLOE_REGISTER_KERNEL(Concat, kCpu, MakeJoin<ConcatKernel<true>>);
FLOE_REGISTER_KERNEL(Split, kCpu, MakeJoin<Split>);
FLOE_REGISTER_KERNEL(SplitV, kCpu, MakeJoin<SplitV>);

}  // namespace
}  // namespace floe::kernels
