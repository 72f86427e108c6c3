// Where, Unique, ListDiff and DynamicPartition: outputs as large as the data say.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/element_keys.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Places of the elements that are not zero, in row-major order.
absl::Status Where(const KernelContext& ctx) {
  const TensorView& in = ctx.in(0);
  const int rank = in.shape.rank();
  BudgetVector<int64_t> found;
  const auto look = [&](auto type) {
    using T = decltype(type);
    for (int64_t i = 0; i < in.elements(); ++i) {
      if (!(in.as<T>()[i] == T(0))) found.push_back(i);
    }
  };
  if (!ForDType(in.dtype, Booleans{}, look) && !ForDType(in.dtype, Numbers{}, look))
    return absl::UnimplementedError(absl::StrCat("Where of ", DTypeName(in.dtype)));
  FLOE_ASSIGN_OR_RETURN(
      const TensorView out,
      ctx.allocator->Allocate(0, DType::kInt64, Shape({static_cast<int64_t>(found.size()), rank})));
  int64_t* to = out.as<int64_t>();
  for (int64_t place : found) {
    for (int k = rank - 1; k >= 0; --k) {
      to[k] = place % in.shape.dim(k);
      place /= in.shape.dim(k);
    }
    to += rank;
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(Where, kCpu, MakeFunction<&Where>);

// A tensor as slices 0 to count along an axis.
struct EqualSlices {
  int axis = 0;
  int64_t outer = 1, count = 1, inner = 1;
  int64_t size() const { return outer * inner; }
  // Element k of slice i.
  int64_t At(int64_t i, int64_t k) const { return (k / inner * count + i) * inner + k % inner; }
};

// `axis` is empty for the elements of a vector.
absl::StatusOr<EqualSlices> SlicesOf(const Shape& shape, const IntList& axis) {
  if (axis.size() > 1 || (axis.empty() && shape.rank() != 1))
    return absl::InvalidArgumentError(
        absl::StrCat("axis has ", axis.size(), " elements for an input of shape ", shape.ToString(),
                     "; expected one, or none for a vector"));
  FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis.empty() ? 0 : axis[0], shape.rank()));
  EqualSlices slices;
  slices.axis = along;
  slices.count = shape.dim(along);
  if (shape.elements() == 0 && slices.count != 0) {
    slices.outer = 0;  // every slice is empty, and equal to all others
    return slices;
  }
  for (int i = 0; i < along; ++i) slices.outer *= shape.dim(i);
  for (int i = along + 1; i < shape.rank(); ++i) slices.inner *= shape.dim(i);
  return slices;
}

// Hash and equality of slices, by their numbers.
struct Compared {
  const BudgetVector<uint64_t>& keys;
  const EqualSlices& slices;

  size_t operator()(int64_t i) const {
    size_t hash = 0;
    for (int64_t k = 0; k < slices.size(); ++k)
      hash = absl::Hash<std::pair<size_t, uint64_t>>()({hash, keys[slices.At(i, k)]});
    return hash;
  }
  bool operator()(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < slices.size(); ++k) {
      if (keys[slices.At(a, k)] != keys[slices.At(b, k)]) return false;
    }
    return true;
  }
};

// The distinct slices in the order in which they come first, the number among them of each slice,
// and with `counts` how often each comes.
absl::Status Unique(const KernelContext& ctx, DType index_type, bool counts) {
  const TensorView& in = ctx.in(0);
  IntList axis;
  if (ctx.inputs.size() > 1) FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &axis));
  FLOE_ASSIGN_OR_RETURN(const EqualSlices slices, SlicesOf(in.shape, axis));
  ElementKeys elements;
  FLOE_ASSIGN_OR_RETURN(const BudgetVector<uint64_t> keys, elements.Of(in));
  const Compared compared{keys, slices};
  absl::flat_hash_map<int64_t, int64_t, Compared, Compared> seen(0, compared, compared);
  std::vector<int64_t> index(static_cast<size_t>(slices.count)), count, first;
  RunWatch watch;
  const int64_t look_every = std::max<int64_t>(1, (int64_t{1} << 17) / (slices.size() + 1));
  for (int64_t i = 0; i < slices.count; ++i) {
    if (i % look_every == 0 && watch.Stopped()) return watch.status();
    const auto next = static_cast<int64_t>(first.size());
    const int64_t at = seen.try_emplace(i, next).first->second;
    if (at == next) {
      first.push_back(i);
      count.push_back(0);
    }
    index[i] = at;
    ++count[at];
  }
  Shape shape = in.shape;
  shape.set_dim(slices.axis, static_cast<int64_t>(first.size()));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, in.dtype, shape));
  EqualSlices to = slices;
  to.count = static_cast<int64_t>(first.size());
  for (int64_t i = 0; i < to.count; ++i) {
    for (int64_t k = 0; k < slices.size(); k += slices.inner)
      CopyElements(in.dtype, ElementAt(in, slices.At(first[i], k)), ElementAt(out, to.At(i, k)),
                   slices.inner);
  }
  FLOE_RETURN_IF_ERROR(GiveInts(ctx, 1, index_type, index));
  return counts ? GiveInts(ctx, 2, index_type, count) : absl::OkStatus();
}
template <bool kCounts>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnique(const KernelArgs& args) {
  const DType index = args.node.attrs.Type("out_idx", DType::kInt32);
  return FromFunction([index](const KernelContext& ctx) { return Unique(ctx, index, kCounts); });
}
FLOE_REGISTER_KERNEL(Unique, kCpu, MakeUnique<false>);
FLOE_REGISTER_KERNEL(UniqueV2, kCpu, MakeUnique<false>);
FLOE_REGISTER_KERNEL(UniqueWithCounts, kCpu, MakeUnique<true>);
FLOE_REGISTER_KERNEL(UniqueWithCountsV2, kCpu, MakeUnique<true>);

absl::Status ListDiff(const KernelContext& ctx, DType index_type) {
  const TensorView& x = ctx.in(0);
  ElementKeys elements;
  FLOE_ASSIGN_OR_RETURN(const BudgetVector<uint64_t> keys, elements.Of(x));
  FLOE_ASSIGN_OR_RETURN(const BudgetVector<uint64_t> others, elements.Of(ctx.in(1)));
  const absl::flat_hash_set<uint64_t> left_out(others.begin(), others.end());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (left_out.count(keys[i]) == 0) places.push_back(i);
  }
  const auto count = static_cast<int64_t>(places.size());
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, x.dtype, Shape({count})));
  for (int64_t i = 0; i < count; ++i)
    CopyElements(x.dtype, ElementAt(x, places[i]), ElementAt(out, i), 1);
  return GiveInts(ctx, 1, index_type, places);
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeListDiff(const KernelArgs& args) {
  const DType index = args.node.attrs.Type("out_idx", DType::kInt32);
  return FromFunction([index](const KernelContext& ctx) { return ListDiff(ctx, index); });
}
FLOE_REGISTER_KERNEL(ListDiff, kCpu, MakeListDiff);

absl::StatusOr<std::unique_ptr<Kernel>> MakePartition(const KernelArgs& args) {
  const int64_t count = args.node.attrs.Int("num_partitions");
  const int outputs = args.node.num_outputs;
  return FromFunction([count, outputs](const KernelContext& ctx) -> absl::Status {
    const TensorView& data = ctx.in(0);
    const Shape& id_shape = ctx.in(1).shape;
    IntList ids;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &ids));
    Shape inner;
    for (int i = 0; i < data.shape.rank(); ++i) {
      if (i >= id_shape.rank()) inner.push_back(data.shape.dim(i));
    }
    if (id_shape.rank() > data.shape.rank() ||
        inner.elements() * static_cast<int64_t>(ids.size()) != data.elements())
      return absl::InvalidArgumentError(absl::StrCat("partitions ", id_shape.ToString(),
                                                     " are no prefix of ", data.shape.ToString()));
    BudgetVector<int64_t> sizes(count);
    for (int64_t id : ids) {
      if (id < 0 || id >= count)
        return absl::InvalidArgumentError(
            absl::StrCat("partition ", id, " is not in [0, ", count, ")"));
      ++sizes[id];
    }
    BudgetVector<std::byte*> to(std::max<int64_t>(count, outputs));
    for (int k = 0; k < outputs; ++k) {
      Shape shape({k < count ? sizes[k] : 0});
      for (int64_t d : inner.dims()) shape.push_back(d);
      FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(k, data.dtype, shape));
      to[k] = out.as<std::byte>();
    }
    const auto step = static_cast<int64_t>(ElementBytes(data.dtype)) * inner.elements();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= outputs) continue;
      const std::byte* from = data.as<std::byte>() + static_cast<int64_t>(i) * step;
      CopyElements(data.dtype, from, to[ids[i]], inner.elements());
      to[ids[i]] += step;
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(DynamicPartition, kCpu, MakePartition);

}  // namespace
}  // namespace floe::kernels
