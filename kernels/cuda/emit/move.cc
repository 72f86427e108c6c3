// Slices, transposes, tiles, reversals and plain copies: all are strided copies.
#include "kernels/cuda/emit/copy.h"
#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/move_args.h"
#include "model/ops/strided_slice.h"

namespace floe::cuda {
namespace {

using kernels::DenseStrides;
using kernels::ElementAt;
using kernels::Grid;
using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

int64_t BytesOf(const TensorView& view) { return static_cast<int64_t>(DTypeSize(view.dtype)); }

KernelOr MakePlainCopy(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    for (size_t i = 0; i < at.outputs.size(); ++i) {
      const TensorView& out = at.outputs[i];
      if (out.data != nullptr)
        EmitBytes(at.inputs[i].data, out.data, static_cast<int64_t>(out.bytes()), launches);
    }
  });
}

KernelOr MakeTranspose(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, kMoveDims));
  FLOE_ASSIGN_OR_RETURN(IntList perm, KnownInts(args, 1));
  const int rank = args.inputs[0].type.shape.rank();
  if (static_cast<int>(perm.size()) != rank)
    return absl::InvalidArgumentError(
        absl::StrCat("perm has ", perm.size(), " elements, input has rank ", rank));
  uint64_t seen = 0;
  for (int64_t& axis : perm) {
    FLOE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
    if (((seen >> axis) & 1) != 0)
      return absl::InvalidArgumentError(absl::StrCat("perm names axis ", axis, " twice"));
    seen |= uint64_t{1} << axis;
  }
  return MakeEmitKernel([perm](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const IntList from = DenseStrides(at.in(0).shape), to = DenseStrides(at.out(0).shape);
    Grid grid;
    for (size_t i = 0; i < perm.size(); ++i)
      grid.Add(at.out(0).shape.dim(static_cast<int>(i)), from[static_cast<size_t>(perm[i])], to[i]);
    EmitCopy(std::move(grid), BytesOf(at.in(0)), at.in(0).data, at.out(0).data, launches);
  });
}

// What is known of a StridedSlice but its input's shape.
struct SliceSpec {
  ops::SliceDims dims;
  IntList begin, stride;
};

void EmitStridedSlice(const SliceSpec& spec, const DeviceAddresses& at,
                      std::vector<Launch>* launches) {
  const Shape &in = at.in(0).shape, &out = at.out(0).shape;
  const IntList from = DenseStrides(in), to = DenseStrides(out);
  Grid grid;
  int64_t start = 0;
  int axis = 0;  // of the output
  for (const ops::SliceDim& d : spec.dims) {
    if (d.axis < 0) {
      ++axis;
      continue;
    }
    const int64_t size = in.dim(d.axis), own = from[static_cast<size_t>(d.axis)];
    if (d.entry < 0) {
      grid.Add(size, own, to[static_cast<size_t>(axis++)]);
      continue;
    }
    const auto entry = static_cast<size_t>(d.entry);
    const int64_t step = spec.stride[entry];
    int64_t b = spec.begin[entry] < 0 ? spec.begin[entry] + size : spec.begin[entry];
    if (!d.shrink) {
      if (d.begin_masked) b = step > 0 ? 0 : size - 1;
      b = std::min(std::max<int64_t>(b, 0), size - 1);
      // A step that is never made may be of any size.
      grid.Add(out.dim(axis), out.dim(axis) > 1 ? own * step : own, to[static_cast<size_t>(axis)]);
      ++axis;
    }
    start += b * own;
  }
  if (out.elements() == 0) return;
  EmitCopy(std::move(grid), BytesOf(at.in(0)), ElementAt(at.in(0), start), at.out(0).data,
           launches);
}

KernelOr MakeStridedSlice(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, kMoveDims));
  const SymShape& shape = args.inputs[0].type.shape;
  SliceSpec spec;
  FLOE_ASSIGN_OR_RETURN(spec.begin, KnownInts(args, 1));
  FLOE_ASSIGN_OR_RETURN(spec.stride, KnownInts(args, 3));
  FLOE_ASSIGN_OR_RETURN(
      spec.dims, ops::ResolveStridedSlice(ops::SliceMasks(args.node.attrs),
                                          static_cast<int>(spec.begin.size()), shape.rank()));
  // An index that some number of rows does not have fails, which a launch cannot.
  for (const ops::SliceDim& d : spec.dims) {
    if (!d.shrink) continue;
    const Dim& dim = shape.dim(d.axis);
    const int64_t index = spec.begin[static_cast<size_t>(d.entry)];
    if (!dim.concrete() || index >= dim.size() || index < -dim.size())
      return absl::UnimplementedError(absl::StrCat("StridedSlice on a GPU: index ", index,
                                                   " of dimension ", d.axis, " of ",
                                                   shape.ToString()));
  }
  return MakeEmitKernel(
      [spec = std::move(spec)](const DeviceAddresses& at, std::vector<Launch>* launches) {
        EmitStridedSlice(spec, at, launches);
      });
}

KernelOr MakeSlice(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, kMoveDims));
  const SymShape& shape = args.inputs[0].type.shape;
  FLOE_ASSIGN_OR_RETURN(const IntList begin, KnownInts(args, 1));
  FLOE_ASSIGN_OR_RETURN(const IntList size, KnownInts(args, 2));
  const auto rank = static_cast<size_t>(shape.rank());
  if (begin.size() != rank || size.size() != rank)
    return absl::InvalidArgumentError(
        absl::StrCat("begin has ", begin.size(), " elements, input has rank ", rank));
  for (size_t i = 0; i < rank; ++i) {
    const Dim& dim = shape.dim(static_cast<int>(i));
    const bool all = begin[i] == 0 && size[i] == -1;
    const bool inside = dim.concrete() && begin[i] >= 0 && begin[i] <= dim.size() &&
                        size[i] <= dim.size() - begin[i];
    if (!all && !inside)
      return absl::UnimplementedError(absl::StrCat("Slice on a GPU: begin ", begin[i], " and size ",
                                                   size[i], " of dimension ", i, " of ",
                                                   shape.ToString()));
  }
  return MakeEmitKernel([begin](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const IntList from = DenseStrides(at.in(0).shape), to = DenseStrides(at.out(0).shape);
    Grid grid;
    int64_t start = 0;
    for (size_t i = 0; i < begin.size(); ++i) {
      start += begin[i] * from[i];
      grid.Add(at.out(0).shape.dim(static_cast<int>(i)), from[i], to[i]);
    }
    if (at.out(0).elements() == 0) return;
    EmitCopy(std::move(grid), BytesOf(at.in(0)), ElementAt(at.in(0), start), at.out(0).data,
             launches);
  });
}

// Every dim is walked as [multiple, size]; the multiple steps nowhere in the input.
KernelOr MakeTile(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, kMoveDims / 2));
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const Shape &in = at.in(0).shape, &out = at.out(0).shape;
    if (out.elements() == 0) return;
    const IntList from = DenseStrides(in), to = DenseStrides(out);
    Grid grid;
    for (int i = 0; i < in.rank(); ++i) {
      const auto d = static_cast<size_t>(i);
      grid.Add(out.dim(i) / in.dim(i), 0, to[d] * in.dim(i));
      grid.Add(in.dim(i), from[d], to[d]);
    }
    EmitCopy(std::move(grid), BytesOf(at.in(0)), at.in(0).data, at.out(0).data, launches);
  });
}

KernelOr MakeBroadcastTo(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_ASSIGN_OR_RETURN(const IntList shape, KnownInts(args, 1));
  if (shape.size() > kMoveDims)
    return absl::UnimplementedError(absl::StrCat("BroadcastTo of ", shape.size(), " dims"));
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const Shape &in = at.in(0).shape, &out = at.out(0).shape;
    const IntList from = DenseStrides(in), to = DenseStrides(out);
    Grid grid;
    for (int i = 0; i < out.rank(); ++i) {
      const int own = i - (out.rank() - in.rank());
      const bool repeats = own < 0 || in.dim(own) == 1;
      grid.Add(out.dim(i), repeats ? 0 : from[static_cast<size_t>(own)],
               to[static_cast<size_t>(i)]);
    }
    EmitCopy(std::move(grid), BytesOf(at.in(0)), at.in(0).data, at.out(0).data, launches);
  });
}

KernelOr MakeReverse(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, kMoveDims));
  const int rank = args.inputs[0].type.shape.rank();
  FLOE_ASSIGN_OR_RETURN(IntList axes, KnownInts(args, 1));
  uint64_t reversed = 0;
  for (const int64_t axis : axes) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank));
    if (((reversed >> a) & 1) != 0)
      return absl::InvalidArgumentError(absl::StrCat("axis ", a, " is named twice"));
    reversed |= uint64_t{1} << a;
  }
  return MakeEmitKernel([reversed](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const Shape& shape = at.in(0).shape;
    if (shape.elements() == 0) return;
    const IntList strides = DenseStrides(shape);
    Grid grid;
    int64_t start = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t stride = strides[static_cast<size_t>(i)];
      const bool backwards = ((reversed >> i) & 1) != 0;
      if (backwards) start += (shape.dim(i) - 1) * stride;
      grid.Add(shape.dim(i), backwards ? -stride : stride, stride);
    }
    EmitCopy(std::move(grid), BytesOf(at.in(0)), ElementAt(at.in(0), start), at.out(0).data,
             launches);
  });
}

bool RegisterMoves() {
  RegisterEmitter<MakePlainCopy>({"Identity", "Reshape", "Squeeze", "ExpandDims"}, {});
  RegisterEmitter<MakeTranspose>({"Transpose"}, {});
  RegisterEmitter<MakeStridedSlice>({"StridedSlice"}, {});
  RegisterEmitter<MakeSlice>({"Slice"}, {});
  RegisterEmitter<MakeTile>({"Tile"}, {});
  RegisterEmitter<MakeBroadcastTo>({"BroadcastTo"}, {});
  RegisterEmitter<MakeReverse>({"ReverseV2"}, {});
  return true;
}
const bool kMovesRegistered = RegisterMoves();

}  // namespace
}  // namespace floe::cuda
