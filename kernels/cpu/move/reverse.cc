// ReverseV2, Roll and ReverseSequence: grid copies that run backwards or start elsewhere.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

absl::Status Reverse(const KernelContext& ctx) {
  const Shape& shape = ctx.in(0).shape;
  IntList axes;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &axes));
  const IntList strides = DenseStrides(shape);
  Grid grid{IntList(shape.dims().begin(), shape.dims().end()), strides, strides};
  int64_t start = 0;
  for (int64_t axis : axes) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, shape.rank()));
    if (grid.from[a] < 0)
      return absl::InvalidArgumentError(absl::StrCat("axis ", a, " is named twice"));
    start += (shape.dim(a) - 1) * strides[a];
    grid.from[a] = -strides[a];
  }
  if (shape.elements() == 0) return absl::OkStatus();
  CopyGrid(std::move(grid), ctx.in(0).dtype, ElementAt(ctx.in(0), start), ctx.out(0).data,
           ctx.pool);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(ReverseV2, kCpu, MakeFunction<Reverse>);

// Each rolled axis falls into the part that moves up and the part that wraps around.
absl::Status Roll(const KernelContext& ctx) {
  const Shape& shape = ctx.in(0).shape;
  IntList shifts, axes;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &shifts));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &axes));
  if (shifts.size() != axes.size())
    return absl::InvalidArgumentError(
        absl::StrCat(shifts.size(), " shifts for ", axes.size(), " axes"));
  if (shape.elements() == 0) return absl::OkStatus();
  IntList shift(shape.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axes[i], shape.rank()));
    const int64_t size = shape.dim(a);
    shift[a] = ((shift[a] + shifts[i] % size) % size + size) % size;
  }
  const IntList strides = DenseStrides(shape);
  // An axis that is shifted has two elements at least: there are no more of them than bits.
  IntList bit(shape.rank(), -1);
  int shifted = 0;
  for (int a = 0; a < shape.rank(); ++a) {
    if (shift[a] != 0) bit[a] = shifted++;
  }
  for (uint64_t wrapped = 0; wrapped < uint64_t{1} << shifted; ++wrapped) {
    Grid grid;
    int64_t from = 0, to = 0;
    for (int a = 0; a < shape.rank(); ++a) {
      const bool wraps = bit[a] >= 0 && ((wrapped >> bit[a]) & 1) != 0;
      const int64_t stays = shape.dim(a) - shift[a];
      grid.Add(wraps ? shift[a] : stays, strides[a], strides[a]);
      (wraps ? from : to) += (wraps ? stays : shift[a]) * strides[a];
    }
    CopyGrid(std::move(grid), ctx.in(0).dtype, ElementAt(ctx.in(0), from),
             ElementAt(ctx.out(0), to), ctx.pool);
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(Roll, kCpu, MakeFunction<Roll>);

absl::Status ReverseSequence(const KernelContext& ctx, int64_t seq_attr, int64_t batch_attr) {
  const Shape& shape = ctx.in(0).shape;
  FLOE_ASSIGN_OR_RETURN(const int seq, NormalizeAxis(seq_attr, shape.rank()));
  FLOE_ASSIGN_OR_RETURN(const int batch, NormalizeAxis(batch_attr, shape.rank()));
  if (seq == batch) return absl::InvalidArgumentError("seq_dim and batch_dim are equal");
  IntList lengths;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &lengths));
  if (static_cast<int64_t>(lengths.size()) != shape.dim(batch)) {
    return absl::InvalidArgumentError(
        absl::StrCat(lengths.size(), " lengths for a batch of ", shape.dim(batch)));
  }
  const IntList strides = DenseStrides(shape);
  for (int64_t b = 0; b < shape.dim(batch); ++b) {
    const int64_t length = lengths[b];
    if (length < 0 || length > shape.dim(seq)) {
      return absl::InvalidArgumentError(absl::StrCat("length ", length, " is outside dimension ",
                                                     seq, " of size ", shape.dim(seq)));
    }
    for (const bool reversed : {true, false}) {
      Grid grid;
      for (int a = 0; a < shape.rank(); ++a) {
        if (a == batch) continue;
        const int64_t count = a != seq ? shape.dim(a) : reversed ? length : shape.dim(seq) - length;
        grid.Add(count, a == seq && reversed ? -strides[a] : strides[a], strides[a]);
      }
      const int64_t base = b * strides[batch];
      const int64_t from =
          reversed ? base + (length - 1) * strides[seq] : base + length * strides[seq];
      const int64_t to = reversed ? base : from;
      CopyGrid(std::move(grid), ctx.in(0).dtype, ElementAt(ctx.in(0), from),
               ElementAt(ctx.out(0), to), ctx.pool);
    }
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeReverseSequence(const KernelArgs& args) {
  const int64_t seq = args.node.attrs.Int("seq_dim"), batch = args.node.attrs.Int("batch_dim");
  return FromFunction(
      [seq, batch](const KernelContext& ctx) { return ReverseSequence(ctx, seq, batch); });
}
FLOE_REGISTER_KERNEL(ReverseSequence, kCpu, MakeReverseSequence);

}  // namespace
}  // namespace floe::kernels
