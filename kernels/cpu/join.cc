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

// A band of each line of [outer, width]: where the first begins, and elements from line to line.
struct Band {
  char* data;
  int64_t stride;
};

Band BandOf(const TensorView& view, int64_t at, int64_t stride) {
  return {view.as<char>() + at * static_cast<int64_t>(ElementBytes(view.dtype)), stride};
}

void CopyBand(const KernelContext& ctx, DType dtype, const Band& from, const Band& to,
              int64_t outer, int64_t width) {
  Grid grid;
  grid.Add(outer, from.stride, to.stride);
  grid.Add(width, 1, 1);
  CopyGrid(std::move(grid), dtype, from.data, to.data, ctx.pool);
}

// Calls copy(i, part's width, whole's elements in front of it) for `parts` side by side along
// `axis` of the whole; their sizes follow from their elements.
template <class Copy>
absl::Status ForParts(const Shape& whole, absl::Span<const TensorView> parts, int axis,
                      const Copy& copy) {
  const int64_t outer = Product(whole, 0, axis), width = Product(whole, axis, whole.rank());
  if (outer == 0 || width == 0) return absl::OkStatus();
  int64_t at = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t part_width = parts[i].elements() / outer;
    if (at + part_width > width) return absl::InvalidArgumentError("the parts exceed the whole");
    if (parts[i].data != nullptr) copy(static_cast<int>(i), part_width, at);
    at += part_width;
  }
  if (at == width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the parts take ", at, " of the ", width, " elements along axis ", axis));
}

// Parts that are the bands of lines of [outer, width], dense all.
absl::Status CopyParts(const KernelContext& ctx, const TensorView& whole,
                       absl::Span<const TensorView> parts, int axis, bool into_whole) {
  const int64_t outer = Product(whole.shape, 0, axis),
                width = Product(whole.shape, axis, whole.shape.rank());
  return ForParts(whole.shape, parts, axis, [&](int i, int64_t part_width, int64_t at) {
    const Band band = BandOf(whole, at, width), part = BandOf(parts[i], 0, part_width);
    CopyBand(ctx, whole.dtype, into_whole ? part : band, into_whole ? band : part, outer,
             part_width);
  });
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
  explicit ConcatKernel(bool joins_lines) : joins_lines_(joins_lines) {}

  bool ReadsSpacedLines(int, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return joins_lines_;
  }
  bool WritesSpacedLines() const override { return joins_lines_; }

  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int64_t axis,
                          ReadInt(kAxisFirst ? ctx.inputs.front() : ctx.inputs.back()));
    const TensorView& whole = ctx.out(0);
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, whole.shape.rank()));
    constexpr int kFirst = kAxisFirst ? 1 : 0;
    const auto parts = ctx.inputs.subspan(kFirst, ctx.inputs.size() - 1);
    if (!joins_lines_) return CopyParts(ctx, whole, parts, along, true);
    const int64_t outer = Product(whole.shape, 0, along), stride = ctx.OutLineStride(0);
    return ForParts(whole.shape, parts, along, [&](int i, int64_t width, int64_t at) {
      CopyBand(ctx, whole.dtype, BandOf(parts[i], 0, ctx.InLineStride(kFirst + i)),
               BandOf(whole, at, stride), outer, width);
    });
  }

 private:
  const bool joins_lines_;  // the last dimension of all
};

template <int kData, int kAxis>
class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(bool splits_lines) : splits_lines_(splits_lines) {}

  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return splits_lines_ && i == kData;
  }

  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int64_t axis, ReadInt(ctx.in(kAxis)));
    const TensorView& whole = ctx.in(kData);
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, whole.shape.rank()));
    if (!splits_lines_) return CopyParts(ctx, whole, ctx.outputs, along, false);
    const int64_t outer = Product(whole.shape, 0, along), stride = ctx.InLineStride(kData);
    return ForParts(whole.shape, ctx.outputs, along, [&](int i, int64_t width, int64_t at) {
      CopyBand(ctx, whole.dtype, BandOf(whole, at, stride),
               BandOf(ctx.out(i), 0, ctx.OutLineStride(i)), outer, width);
    });
  }

 private:
  const bool splits_lines_;  // the last dimension
};

// Whether the axis is known, and is the last of `value`.
absl::StatusOr<bool> IsLastAxis(const ValueInfo& axis, const ValueInfo& value) {
  const SymShape& shape = value.type.shape;
  if (!axis.has_constant() || !shape.rank_known() || shape.rank() == 0) return false;
  FLOE_ASSIGN_OR_RETURN(const int64_t along, ReadInt(axis.constant.view()));
  return along == -1 || along == shape.rank() - 1;
}

template <bool kAxisFirst>
absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const bool last,
                        IsLastAxis(kAxisFirst ? args.inputs.front() : args.inputs.back(),
                                   args.inputs[kAxisFirst ? 1 : 0]));
  return std::make_unique<ConcatKernel<kAxisFirst>>(last);
}

template <int kData, int kAxis>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const bool last, IsLastAxis(args.inputs[kAxis], args.inputs[kData]));
  return std::make_unique<SplitKernel<kData, kAxis>>(last);
}
FLOE_REGISTER_KERNEL(ConcatV2, kCpu, MakeConcat<false>);
FLOE_REGISTER_KERNEL(Concat, kCpu, MakeConcat<true>);
const KernelRegistrar kSplit("Split", DeviceKind::kCpu, {}, &MakeSplit<1, 0>);
const KernelRegistrar kSplitV("SplitV", DeviceKind::kCpu, {}, &MakeSplit<0, 2>);

}  // namespace
}  // namespace floe::kernels
