// Pack, ConcatV2, Unpack and Split: every part is a band of the whole.
#include "kernels/cuda/emit/copy.h"
#include "kernels/cuda/emit/emit_util.h"

namespace floe::cuda {
namespace {

using kernels::ElementAt;
using kernels::Grid;
using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Arguments of a kernel, counted as KernelContext::line_strides does: a whole, and its parts side
// by side.
struct JoinedArgs {
  size_t whole, first_part, parts;
};
const TensorView& Argument(const KernelContext& at, size_t arg) {
  const size_t inputs = at.inputs.size();
  return arg < inputs ? at.inputs[arg] : at.outputs[arg - inputs];
}
// Elements from band to band of an argument.
int64_t BandStride(const KernelContext& at, size_t arg, int64_t dense) {
  const int64_t spaced = at.line_strides.empty() ? 0 : at.line_strides[arg];
  return spaced != 0 ? spaced : dense;
}

// From the parts to the whole or from the whole to the parts, whichever is written: of each of the
// whole's lines along `axis` every part has a band. Only bands of the last dim may lie apart.
void EmitParts(const DeviceAddresses& at, const JoinedArgs& of, int64_t axis,
               std::vector<Launch>* launches) {
  const TensorView& whole = Argument(at, of.whole);
  if (whole.elements() == 0) return;
  if (axis < 0) axis += whole.shape.rank();
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= whole.shape.dim(i);
  const int64_t width = whole.elements() / outer, whole_stride = BandStride(at, of.whole, width);
  const bool into_whole = of.whole >= at.inputs.size();
  int64_t place = 0;
  for (size_t arg = of.first_part; arg < of.first_part + of.parts; ++arg) {
    const TensorView& part = Argument(at, arg);
    const int64_t part_width = part.elements() / outer;
    if (part.data != nullptr) {
      const int64_t part_stride = BandStride(at, arg, part_width);
      void* const band = ElementAt(whole, place);
      Grid grid;
      grid.Add(outer, into_whole ? part_stride : whole_stride,
               into_whole ? whole_stride : part_stride);
      grid.Add(part_width, 1, 1);
      EmitCopy(std::move(grid), static_cast<int64_t>(DTypeSize(whole.dtype)),
               into_whole ? part.data : band, into_whole ? band : part.data, launches);
    }
    place += part_width;
  }
}

// Whether the axis is the last one of `value`.
bool IsLastAxis(const KernelArgs& args, int64_t axis, int value) {
  const SymShape& shape = args.inputs[static_cast<size_t>(value)].type.shape;
  return shape.rank_known() && shape.rank() > 0 && (axis == -1 || axis == shape.rank() - 1);
}

KernelOr MakePack(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  return MakeEmitKernel([axis = args.node.attrs.Int("axis")](const DeviceAddresses& at,
                                                             std::vector<Launch>* launches) {
    EmitParts(at, {at.inputs.size(), 0, at.inputs.size()}, axis, launches);
  });
}
KernelOr MakeUnpack(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  return MakeEmitKernel([axis = args.node.attrs.Int("axis")](const DeviceAddresses& at,
                                                             std::vector<Launch>* launches) {
    EmitParts(at, {0, 1, at.outputs.size()}, axis, launches);
  });
}

template <bool kAxisFirst>
class ConcatEmitter final : public DeviceKernel {
 public:
  ConcatEmitter(int64_t axis, bool joins_lines) : axis_(axis), joins_lines_(joins_lines) {}
  bool ReadsSpacedLines(int, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return joins_lines_;
  }
  bool WritesSpacedLines() const override { return joins_lines_; }
  void Emit(const DeviceAddresses& at, std::vector<Launch>* launches) const override {
    const size_t inputs = at.inputs.size();
    EmitParts(at, {inputs, kAxisFirst ? size_t{1} : 0, inputs - 1}, axis_, launches);
  }

 private:
  const int64_t axis_;
  const bool joins_lines_;
};
template <bool kAxisFirst>
KernelOr MakeConcat(const KernelArgs& args) {
  const int last = static_cast<int>(args.inputs.size()) - 1, first_part = kAxisFirst ? 1 : 0;
  FLOE_RETURN_IF_ERROR(CheckMovable(args, first_part));
  FLOE_ASSIGN_OR_RETURN(const int64_t axis, KnownInt(args, kAxisFirst ? 0 : last));
  return std::make_unique<ConcatEmitter<kAxisFirst>>(axis, IsLastAxis(args, axis, first_part));
}

template <int kData>
class SplitEmitter final : public DeviceKernel {
 public:
  SplitEmitter(int64_t axis, bool splits_lines) : axis_(axis), splits_lines_(splits_lines) {}
  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return splits_lines_ && i == kData;
  }
  void Emit(const DeviceAddresses& at, std::vector<Launch>* launches) const override {
    EmitParts(at, {kData, at.inputs.size(), at.outputs.size()}, axis_, launches);
  }

 private:
  const int64_t axis_;
  const bool splits_lines_;
};
template <int kData, int kAxis>
KernelOr MakeSplit(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, kData));
  FLOE_ASSIGN_OR_RETURN(const int64_t axis, KnownInt(args, kAxis));
  return std::make_unique<SplitEmitter<kData>>(axis, IsLastAxis(args, axis, kData));
}

bool RegisterJoins() {
  RegisterEmitter<MakePack>({"Pack"}, {});
  RegisterEmitter<MakeUnpack>({"Unpack"}, {});
  RegisterEmitter<MakeConcat<false>>({"ConcatV2"}, {});
  RegisterEmitter<MakeConcat<true>>({"Concat"}, {});
  RegisterEmitter<MakeSplit<1, 0>>({"Split"}, {});
  RegisterEmitter<MakeSplit<0, 2>>({"SplitV"}, {});
  return true;
}
const bool kJoinsRegistered = RegisterJoins();

}  // namespace
}  // namespace floe::cuda
