// Blocks moved between space, depth and batch, and image patches laid out in the depth.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "model/ops/window.h"

namespace floe::kernels {
namespace {

// One copy for each place inside a block: batch b of that place is batch b of the whole, every
// block-th element of it. `whole` is padded (or cropped) by pads[2i] before axis i + 1.
absl::Status MoveBlocks(const KernelContext& ctx, const TensorView& whole, const TensorView& parts,
                        bool to_parts) {
  IntList blocks, pads;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &blocks));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &pads));
  const int m = static_cast<int>(blocks.size());
  if (pads.size() != 2 * blocks.size() || whole.shape.rank() <= m)
    return absl::InvalidArgumentError("block_shape and pads do not fit");
  if (ctx.out(0).elements() == 0) return absl::OkStatus();  // there may be any number of places
  const IntList whole_strides = DenseStrides(whole.shape), part_strides = DenseStrides(parts.shape);
  const int64_t batch = whole.shape.dim(0);
  int64_t places = 1;
  for (int64_t block : blocks) places *= block;
  if (to_parts && parts.bytes() != 0) std::memset(parts.data, 0, parts.bytes());
  for (int64_t place = 0; place < places; ++place) {
    int64_t whole_at = 0, part_at = place * batch * part_strides[0], rest = place;
    IntList offset(m);
    for (int i = m - 1; i >= 0; --i) {
      offset[i] = rest % blocks[i];
      rest /= blocks[i];
    }
    Grid grid;
    const auto add = [&](int64_t size, int64_t whole_stride, int64_t part_stride) {
      to_parts ? grid.Add(size, whole_stride, part_stride)
               : grid.Add(size, part_stride, whole_stride);
    };
    add(batch, whole_strides[0], part_strides[0]);
    for (int i = 0; i < m; ++i) {
      // Part element j of this axis is whole element j * block + offset - pad.
      const int64_t shift = offset[i] - pads[2 * i], size = whole.shape.dim(i + 1);
      const int64_t first = shift >= 0 ? 0 : (-shift + blocks[i] - 1) / blocks[i];
      const int64_t room = size - shift;
      const int64_t last =
          std::min(room <= 0 ? 0 : (room + blocks[i] - 1) / blocks[i], parts.shape.dim(i + 1));
      add(std::max<int64_t>(0, last - first), whole_strides[i + 1] * blocks[i],
          part_strides[i + 1]);
      whole_at += (first * blocks[i] + shift) * whole_strides[i + 1];
      part_at += first * part_strides[i + 1];
    }
    for (int a = m + 1; a < whole.shape.rank(); ++a)
      add(whole.shape.dim(a), whole_strides[a], part_strides[a]);
    const void* from = to_parts ? ElementAt(whole, whole_at) : ElementAt(parts, part_at);
    void* to = to_parts ? ElementAt(parts, part_at) : ElementAt(whole, whole_at);
    CopyGrid(std::move(grid), whole.dtype, from, to, ctx.pool);
  }
  return absl::OkStatus();
}
absl::Status SpaceToBatch(const KernelContext& ctx) {
  return MoveBlocks(ctx, ctx.in(0), ctx.out(0), true);
}
absl::Status BatchToSpace(const KernelContext& ctx) {
  return MoveBlocks(ctx, ctx.out(0), ctx.in(0), false);
}
FLOE_REGISTER_KERNEL(SpaceToBatchND, kCpu, MakeFunction<SpaceToBatch>);
FLOE_REGISTER_KERNEL(BatchToSpaceND, kCpu, MakeFunction<BatchToSpace>);

// Space as [batch, h, block, w, block, depth], the other side as [batch, h, w, block, block,
// depth]; channels first alike.
absl::Status MoveDepth(const KernelContext& ctx, const TensorView& space, const TensorView& deep,
                       int64_t block, bool first, bool to_deep) {
  const IntList s = DenseStrides(space.shape), d = DenseStrides(deep.shape);
  const int h = first ? 2 : 1, w = h + 1, c = first ? 1 : 3;
  const int64_t depth = space.shape.dim(c);
  Grid grid;
  const auto add = [&](int64_t size, int64_t in_space, int64_t in_deep) {
    to_deep ? grid.Add(size, in_space, in_deep) : grid.Add(size, in_deep, in_space);
  };
  const int64_t row = block * depth * d[c],
                column = depth * d[c];  // of the block, inside the deep side's channels
  add(space.shape.dim(0), s[0], d[0]);
  if (first) add(depth, s[c], d[c]);
  add(deep.shape.dim(h), s[h] * block, d[h]);
  add(block, s[h], row);
  add(deep.shape.dim(w), s[w] * block, d[w]);
  add(block, s[w], column);
  if (!first) add(depth, s[c], d[c]);
  CopyGrid(std::move(grid), space.dtype, ctx.in(0).data, ctx.out(0).data, ctx.pool);
  return absl::OkStatus();
}
template <bool kToDeep>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDepth(const KernelArgs& args) {
  const int64_t block = args.node.attrs.Int("block_size");
  const bool first = args.node.attrs.String("data_format", "NHWC") == "NCHW";
  return FromFunction([block, first](const KernelContext& ctx) {
    return MoveDepth(ctx, kToDeep ? ctx.in(0) : ctx.out(0), kToDeep ? ctx.out(0) : ctx.in(0), block,
                     first, kToDeep);
  });
}
FLOE_REGISTER_KERNEL(SpaceToDepth, kCpu, MakeDepth<true>);
FLOE_REGISTER_KERNEL(DepthToSpace, kCpu, MakeDepth<false>);

struct Patches {
  int64_t kernel[2], stride[2], rate[2];
  bool same;
};

absl::Status ExtractPatches(const KernelContext& ctx, const Patches& p) {
  const Shape &in = ctx.in(0).shape, &out = ctx.out(0).shape;
  if (out.elements() == 0) return absl::OkStatus();  // of any number of places
  const IntList from = DenseStrides(in), to = DenseStrides(out);
  if (ctx.out(0).bytes() != 0) std::memset(ctx.out(0).data, 0, ctx.out(0).bytes());
  int64_t low[2];
  for (int i = 0; i < 2; ++i) {
    low[i] = ops::PadLow(in.dim(i + 1), out.dim(i + 1), ops::WindowSpan(p.kernel[i], p.rate[i]),
                         p.stride[i], {p.same, 0, 0});
  }
  for (int64_t place = 0; place < p.kernel[0] * p.kernel[1]; ++place) {
    const int64_t at[2] = {place / p.kernel[1], place % p.kernel[1]};
    Grid grid;
    grid.Add(in.dim(0), from[0], to[0]);
    int64_t from_at = 0, to_at = place * in.dim(3);
    for (int i = 0; i < 2; ++i) {
      // Output o reads input o * stride + shift.
      const int64_t shift = at[i] * p.rate[i] - low[i], room = in.dim(i + 1) - shift;
      const int64_t first = shift >= 0 ? 0 : (-shift + p.stride[i] - 1) / p.stride[i];
      const int64_t last =
          std::min(room <= 0 ? 0 : (room + p.stride[i] - 1) / p.stride[i], out.dim(i + 1));
      grid.Add(std::max<int64_t>(0, last - first), from[i + 1] * p.stride[i], to[i + 1]);
      from_at += (first * p.stride[i] + shift) * from[i + 1];
      to_at += first * to[i + 1];
    }
    grid.Add(in.dim(3), 1, 1);
    CopyGrid(std::move(grid), ctx.in(0).dtype, ElementAt(ctx.in(0), from_at),
             ElementAt(ctx.out(0), to_at), ctx.pool);
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakePatches(const KernelArgs& args) {
  const auto& a = args.node.attrs;
  const std::vector<int64_t> k = a.Ints("ksizes"), s = a.Ints("strides"), r = a.Ints("rates");
  if (k.size() != 4 || s.size() != 4 || r.size() != 4)
    return absl::InvalidArgumentError("ksizes, strides and rates need 4 elements");
  const Patches p{{k[1], k[2]}, {s[1], s[2]}, {r[1], r[2]}, a.String("padding") == "SAME"};
  return FromFunction([p](const KernelContext& ctx) { return ExtractPatches(ctx, p); });
}
FLOE_REGISTER_KERNEL(ExtractImagePatches, kCpu, MakePatches);

}  // namespace
}  // namespace floe::kernels
