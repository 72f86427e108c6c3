// UniqueV2 and UniqueWithCountsV2: the distinct slices along an axis.
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/element_key.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// A tensor as slices 0 to count along an axis.
struct EqualSlices {
  int axis = 0;
  int64_t outer = 1, count = 1, inner = 1;
  int64_t size() const { return outer * inner; }
  // Element k of slice i.
  int64_t At(int64_t i, int64_t k) const { return (k / inner * count + i) * inner + k % inner; }
};

absl::StatusOr<EqualSlices> SlicesOf(const Shape& shape, const TensorView& axis_input) {
  IntList axis;
  FLOE_RETURN_IF_ERROR(ReadInts(axis_input, &axis));
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

template <class T>
struct Compared {
  const T* x;
  const EqualSlices& slices;

  bool HasNan(int64_t i) const {
    for (int64_t k = 0; k < slices.size(); ++k) {
      if (IsNan(x[slices.At(i, k)])) return true;
    }
    return false;
  }
  size_t operator()(int64_t i) const {  // hash
    size_t hash = 0;
    for (int64_t k = 0; k < slices.size(); ++k)
      hash = absl::Hash<std::pair<size_t, Key<T>>>()({hash, KeyOf(x[slices.At(i, k)])});
    return hash;
  }
  bool operator()(int64_t a, int64_t b) const {  // equality
    for (int64_t k = 0; k < slices.size(); ++k) {
      if (!(KeyOf(x[slices.At(a, k)]) == KeyOf(x[slices.At(b, k)]))) return false;
    }
    return true;
  }
};

template <class T>
absl::Status UniqueSlices(const KernelContext& ctx, DType index_type, bool counts) {
  const TensorView& in = ctx.in(0);
  FLOE_ASSIGN_OR_RETURN(const EqualSlices slices, SlicesOf(in.shape, ctx.in(1)));
  const Compared<T> compared{in.as<T>(), slices};
  absl::flat_hash_map<int64_t, int64_t, Compared<T>, Compared<T>> seen(0, compared, compared);
  BudgetVector<int64_t> index(static_cast<size_t>(slices.count)), count, first;
  RunWatch watch;
  const int64_t look_every = std::max<int64_t>(1, (int64_t{1} << 17) / (slices.size() + 1));
  for (int64_t i = 0; i < slices.count; ++i) {
    if (i % look_every == 0 && watch.Stopped()) return watch.status();
    const auto next = static_cast<int64_t>(first.size());
    const int64_t at = compared.HasNan(i) ? next : seen.try_emplace(i, next).first->second;
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
    for (int64_t k = 0; k < slices.size(); ++k)
      out.as<T>()[to.At(i, k)] = in.as<T>()[slices.At(first[i], k)];
  }
  const std::vector<int64_t> places(index.begin(), index.end()),
      numbers(count.begin(), count.end());
  FLOE_RETURN_IF_ERROR(GiveInts(ctx, 1, index_type, places));
  return counts ? GiveInts(ctx, 2, index_type, numbers) : absl::OkStatus();
}

template <bool kCounts>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUniqueSlices(const KernelArgs& args) {
  const DType index = args.node.attrs.Type("out_idx", DType::kInt32);
  return FromFunction([index](const KernelContext& ctx) {
    absl::Status status =
        absl::UnimplementedError(absl::StrCat("distinct slices of ", DTypeName(ctx.in(0).dtype)));
    ForDType(ctx.in(0).dtype, Comparable{},
             [&](auto t) { status = UniqueSlices<decltype(t)>(ctx, index, kCounts); });
    return status;
  });
}
FLOE_REGISTER_KERNEL(UniqueV2, kCpu, MakeUniqueSlices<false>);
FLOE_REGISTER_KERNEL(UniqueWithCountsV2, kCpu, MakeUniqueSlices<true>);

}  // namespace
}  // namespace floe::kernels
