// Ops that move elements by one grid copy: Transpose, slices, Tile, BroadcastTo, and plain copies.
#include <algorithm>
#include <complex>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/kernel.h"
#include "model/ops/strided_slice.h"

namespace floe::kernels {
namespace {

template <class K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMove(const KernelArgs& args) {
  if constexpr (std::is_constructible_v<K, const Attrs&>) {
    return std::make_unique<K>(args.node.attrs);
  } else {
    return std::make_unique<K>();
  }
}

// The bytes of each input as they are.
class CopyKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    for (size_t i = 0; i < ctx.outputs.size(); ++i) {
      const TensorView& out = ctx.outputs[i];
      if (out.data != nullptr)
        CopyElements(out.dtype, ctx.inputs[i].data, out.data, out.elements());
    }
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Identity, kCpu, MakeMove<CopyKernel>);
FLOE_REGISTER_KERNEL(IdentityN, kCpu, MakeMove<CopyKernel>);
FLOE_REGISTER_KERNEL(Reshape, kCpu, MakeMove<CopyKernel>);
FLOE_REGISTER_KERNEL(EnsureShape, kCpu, MakeMove<CopyKernel>);
FLOE_REGISTER_KERNEL(Print, kCpu, MakeMove<CopyKernel>);
FLOE_REGISTER_KERNEL(Squeeze, kCpu, MakeMove<CopyKernel>);
FLOE_REGISTER_KERNEL(ExpandDims, kCpu, MakeMove<CopyKernel>);

class TransposeKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    IntList perm;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &perm));
    const int rank = ctx.in(0).shape.rank();
    if (static_cast<int>(perm.size()) != rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("perm has ", perm.size(), " elements, input has rank ", rank));
    }
    const IntList from = DenseStrides(ctx.in(0).shape), to = DenseStrides(ctx.out(0).shape);
    Grid grid;
    absl::InlinedVector<bool, 8> seen(rank, false);
    for (int i = 0; i < rank; ++i) {
      FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(perm[i], rank));
      if (seen[axis])
        return absl::InvalidArgumentError(absl::StrCat("perm names axis ", axis, " twice"));
      seen[axis] = true;
      grid.Add(ctx.out(0).shape.dim(i), from[axis], to[i]);
    }
    CopyGrid(std::move(grid), ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, ctx.pool);
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Transpose, kCpu, MakeMove<TransposeKernel>);

class ConjugateTransposeKernel : public TransposeKernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_RETURN_IF_ERROR(TransposeKernel::Run(ctx));
    const TensorView& out = ctx.out(0);
    if (out.dtype == DType::kComplex64) Conjugate(out.as<std::complex<float>>(), out.elements());
    if (out.dtype == DType::kComplex128) Conjugate(out.as<std::complex<double>>(), out.elements());
    return absl::OkStatus();
  }

 private:
  template <class T>
  static void Conjugate(T* values, int64_t count) {
    std::transform(values, values + count, values, [](T x) { return std::conj(x); });
  }
};
FLOE_REGISTER_KERNEL(ConjugateTranspose, kCpu, MakeMove<ConjugateTransposeKernel>);

const void* Offset(const TensorView& view, int64_t elements) {
  return view.as<char>() + elements * static_cast<int64_t>(ElementBytes(view.dtype));
}

class StridedSliceKernel : public Kernel {
 public:
  explicit StridedSliceKernel(const Attrs& attrs) : masks_(attrs) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
    const int entries = static_cast<int>(ctx.in(1).elements());
    FLOE_ASSIGN_OR_RETURN(const ops::SliceDims dims,
                          ops::ResolveStridedSlice(masks_, entries, in.rank()));
    IntList begin, stride;
    bool needs_begin = false;
    for (const ops::SliceDim& d : dims)
      needs_begin = needs_begin || (d.entry >= 0 && !d.begin_masked);
    if (needs_begin) FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &begin));
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(3), &stride));
    begin.resize(entries, 0);
    const IntList from = DenseStrides(in), to = DenseStrides(out);
    Grid grid;
    int64_t start = 0;
    int at = 0;  // axis of the output
    for (const ops::SliceDim& d : dims) {
      if (d.axis < 0) {
        ++at;
        continue;
      }
      const int64_t size = in.dim(d.axis), own = from[d.axis];
      if (d.entry < 0) {
        grid.Add(size, own, to[at++]);
        continue;
      }
      const int64_t step = stride[d.entry];
      int64_t b = begin[d.entry] < 0 ? begin[d.entry] + size : begin[d.entry];
      if (d.shrink) {
        if (b < 0 || b >= size) {
          return absl::InvalidArgumentError(absl::StrCat(
              "index ", begin[d.entry], " is outside dimension ", d.axis, " of size ", size));
        }
      } else {
        if (d.begin_masked) b = step > 0 ? 0 : size - 1;
        b = std::min(std::max<int64_t>(b, 0), size - 1);
        // A step that is never made may be of any size.
        grid.Add(out.dim(at), out.dim(at) > 1 ? own * step : own, to[at]);
        ++at;
      }
      start += b * own;
    }
    if (out.elements() == 0) return absl::OkStatus();
    CopyGrid(std::move(grid), ctx.in(0).dtype, Offset(ctx.in(0), start), ctx.out(0).data, ctx.pool);
    return absl::OkStatus();
  }

 private:
  ops::SliceMasks masks_;
};
FLOE_REGISTER_KERNEL(StridedSlice, kCpu, MakeMove<StridedSliceKernel>);

class SliceKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
    IntList begin;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &begin));
    const IntList from = DenseStrides(in), to = DenseStrides(out);
    Grid grid;
    int64_t start = 0;
    if (static_cast<int>(begin.size()) != in.rank())
      return absl::InvalidArgumentError(
          absl::StrCat("begin has ", begin.size(), " elements, input has rank ", in.rank()));
    for (int i = 0; i < in.rank(); ++i) {
      if (begin[i] < 0 || begin[i] > in.dim(i) - out.dim(i)) {
        return absl::InvalidArgumentError(absl::StrCat("begin ", begin[i], " and size ", out.dim(i),
                                                       " leave dimension ", i, " of ",
                                                       in.ToString()));
      }
      start += begin[i] * from[i];
      grid.Add(out.dim(i), from[i], to[i]);
    }
    CopyGrid(std::move(grid), ctx.in(0).dtype, Offset(ctx.in(0), start), ctx.out(0).data, ctx.pool);
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Slice, kCpu, MakeMove<SliceKernel>);

// Every dim is walked as [multiple, size]; the multiple steps nowhere in the input.
class TileKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
    if (out.elements() == 0) return absl::OkStatus();
    const IntList from = DenseStrides(in), to = DenseStrides(out);
    Grid grid;
    for (int i = 0; i < in.rank(); ++i) {
      grid.Add(out.dim(i) / in.dim(i), 0, to[i] * in.dim(i));
      grid.Add(in.dim(i), from[i], to[i]);
    }
    CopyGrid(std::move(grid), ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, ctx.pool);
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(Tile, kCpu, MakeMove<TileKernel>);

class BroadcastToKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
    const IntList from = DenseStrides(in), to = DenseStrides(out);
    Grid grid;
    for (int i = 0; i < out.rank(); ++i) {
      const int own = i - (out.rank() - in.rank());
      const bool repeats = own < 0 || in.dim(own) == 1;
      if (!repeats && in.dim(own) != out.dim(i)) {
        return absl::InvalidArgumentError(
            absl::StrCat("cannot broadcast ", in.ToString(), " to ", out.ToString()));
      }
      grid.Add(out.dim(i), repeats ? 0 : from[own], to[i]);
    }
    CopyGrid(std::move(grid), ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, ctx.pool);
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(BroadcastTo, kCpu, MakeMove<BroadcastToKernel>);

}  // namespace
}  // namespace floe::kernels
