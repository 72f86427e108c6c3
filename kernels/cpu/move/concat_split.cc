// Pack, ConcatV2, Unpack, Split: every part is a band of the whole, seen as [outer, along * inner].
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

int64_t Product(const Shape& shape, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= shape.dim(i);
  return n;
}

// Arguments of a kernel, counted as KernelContext::line_strides does: a whole, and its parts side
// by side.
struct Joined {
  size_t whole, first_part, parts;
};

const TensorView& ArgOf(const KernelContext& ctx, size_t arg) {
  const size_t inputs = ctx.inputs.size();
  return arg < inputs ? ctx.inputs[arg] : ctx.outputs[arg - inputs];
}

// Elements from band to band of an argument.
int64_t StrideOf(const KernelContext& ctx, size_t arg, int64_t dense) {
  const int64_t spaced = ctx.line_strides.empty() ? 0 : ctx.line_strides[arg];
  return spaced != 0 ? spaced : dense;
}

// From the parts to the whole or from the whole to the parts, whichever is written: of each of
// `outer` lines of the whole every part has a band. Only bands of the last dimension may lie apart.
// Parts without data are left out; their sizes along `axis` follow from their elements.
absl::Status CopyParts(const KernelContext& ctx, const Joined& joined, int axis) {
  const TensorView& whole = ArgOf(ctx, joined.whole);
  const int64_t outer = Product(whole.shape, 0, axis),
                width = Product(whole.shape, axis, whole.shape.rank());
  if (outer == 0 || width == 0) return absl::OkStatus();
  const int64_t whole_stride = StrideOf(ctx, joined.whole, width);
  const bool into_whole = joined.whole >= ctx.inputs.size();
  int64_t at = 0;
  for (size_t arg = joined.first_part; arg < joined.first_part + joined.parts; ++arg) {
    const TensorView& part = ArgOf(ctx, arg);
    const int64_t part_width = part.elements() / outer;
    if (at + part_width > width) return absl::InvalidArgumentError("the parts exceed the whole");
    if (part.data != nullptr) {
      const int64_t part_stride = StrideOf(ctx, arg, part_width);
      void* const band = whole.as<char>() + at * static_cast<int64_t>(ElementBytes(whole.dtype));
      Grid grid;
      grid.Add(outer, into_whole ? part_stride : whole_stride,
               into_whole ? whole_stride : part_stride);
      grid.Add(part_width, 1, 1);
      CopyGrid(std::move(grid), whole.dtype, into_whole ? part.data : band,
               into_whole ? band : part.data, ctx.pool);
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
    return CopyParts(ctx, {ctx.inputs.size(), 0, ctx.inputs.size()}, axis);
  }

 private:
  int64_t axis_;
};

class UnpackKernel : public Kernel {
 public:
  explicit UnpackKernel(int64_t axis) : axis_(axis) {}
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, ctx.in(0).shape.rank()));
    return CopyParts(ctx, {0, 1, ctx.outputs.size()}, axis);
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
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, ctx.out(0).shape.rank()));
    const size_t inputs = ctx.inputs.size();
    return CopyParts(ctx, {inputs, kAxisFirst ? size_t{1} : 0, inputs - 1}, along);
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
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, ctx.in(kData).shape.rank()));
    return CopyParts(ctx, {kData, ctx.inputs.size(), ctx.outputs.size()}, along);
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
