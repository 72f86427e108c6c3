// Where, Unique, ListDiff, DynamicPartition and sorted segments: outputs as large as the data say.
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/element_key.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

absl::Status NoKernel(const char* op, DType dtype) {
  return absl::UnimplementedError(absl::StrCat(op, " of ", DTypeName(dtype)));
}

// Places of the elements that are not zero, in row-major order.
absl::Status Where(const KernelContext& ctx) {
  const TensorView& in = ctx.in(0);
  const int rank = in.shape.rank();
  absl::Status status = NoKernel("Where", in.dtype);
  const auto gather = [&](auto t) -> absl::Status {
    using T = decltype(t);
    const T* x = in.as<T>();
    const int64_t n = in.elements(), found = n - std::count(x, x + n, T(0));
    FLOE_ASSIGN_OR_RETURN(const TensorView out,
                          ctx.allocator->Allocate(0, DType::kInt64, Shape({found, rank})));
    int64_t* to = out.as<int64_t>();
    for (int64_t i = 0; rank > 0 && i < n; ++i) {
      if (x[i] == T(0)) continue;
      int64_t rest = i;
      for (int k = rank - 1; k >= 0; --k) {
        to[k] = rest % in.shape.dim(k);
        rest /= in.shape.dim(k);
      }
      to += rank;
    }
    return absl::OkStatus();
  };
  const auto run = [&](auto t) { status = gather(t); };
  if (!ForDType(in.dtype, Booleans{}, run)) ForDType(in.dtype, Numbers{}, run);
  return status;
}

// Elements between two looks whether the run should go on.
constexpr int64_t kUniqueLookEvery = int64_t{1} << 17;

template <class T>
absl::Status UniqueOf(const KernelContext& ctx, DType index_type, bool counts) {
  const TensorView& in = ctx.in(0);
  const T* x = in.as<T>();
  absl::flat_hash_map<Key<T>, int64_t> seen;  // seeded: no keys are slow on purpose
  std::vector<int64_t> index(in.elements()), count, first;
  RunWatch watch;
  for (int64_t i = 0; i < in.elements(); ++i) {
    if (i % kUniqueLookEvery == 0 && watch.Stopped()) return watch.status();
    const auto next = static_cast<int64_t>(first.size());
    const int64_t at = IsNan(x[i]) ? next : seen.try_emplace(KeyOf(x[i]), next).first->second;
    if (at == next) {
      first.push_back(i);
      count.push_back(0);
    }
    index[i] = at;
    ++count[at];
  }
  FLOE_ASSIGN_OR_RETURN(
      const TensorView out,
      ctx.allocator->Allocate(0, in.dtype, Shape({static_cast<int64_t>(first.size())})));
  for (size_t i = 0; i < first.size(); ++i) out.as<T>()[i] = x[first[i]];
  FLOE_RETURN_IF_ERROR(GiveInts(ctx, 1, index_type, index));
  return counts ? GiveInts(ctx, 2, index_type, count) : absl::OkStatus();
}
template <bool kCounts>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUnique(const KernelArgs& args) {
  const DType index = args.node.attrs.Type("out_idx", DType::kInt32);
  return FromFunction([index](const KernelContext& ctx) {
    absl::Status status = NoKernel("Unique", ctx.in(0).dtype);
    ForDType(ctx.in(0).dtype, Comparable{},
             [&](auto t) { status = UniqueOf<decltype(t)>(ctx, index, kCounts); });
    return status;
  });
}

template <class T>
absl::Status ListDiffOf(const KernelContext& ctx, DType index_type) {
  const TensorView &x = ctx.in(0), &y = ctx.in(1);
  absl::flat_hash_set<Key<T>> left_out;
  for (int64_t i = 0; i < y.elements(); ++i) {
    const T& value = y.as<T>()[i];
    if (!IsNan(value)) left_out.insert(KeyOf(value));
  }
  std::vector<int64_t> places;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const T& value = x.as<T>()[i];
    if (IsNan(value) || left_out.count(KeyOf(value)) == 0) places.push_back(i);
  }
  FLOE_ASSIGN_OR_RETURN(
      const TensorView out,
      ctx.allocator->Allocate(0, x.dtype, Shape({static_cast<int64_t>(places.size())})));
  for (size_t i = 0; i < places.size(); ++i) out.as<T>()[i] = x.as<T>()[places[i]];
  return GiveInts(ctx, 1, index_type, places);
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeListDiff(const KernelArgs& args) {
  const DType index = args.node.attrs.Type("out_idx", DType::kInt32);
  return FromFunction([index](const KernelContext& ctx) {
    absl::Status status = NoKernel("ListDiff", ctx.in(0).dtype);
    ForDType(ctx.in(0).dtype, Comparable{},
             [&](auto t) { status = ListDiffOf<decltype(t)>(ctx, index); });
    return status;
  });
}

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

// The number of segments that ids which never fall make.
absl::StatusOr<int64_t> SegmentCount(const IntList& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < (i == 0 ? 0 : ids[i - 1]))
      return absl::InvalidArgumentError(
          absl::StrCat("segment ids are not in increasing order: ", ids[i], " at place ", i));
    if (ids[i] >= int64_t{1} << 31)
      return absl::InvalidArgumentError(absl::StrCat("segment id ", ids[i], " is too large"));
  }
  return ids.empty() ? 0 : ids.back() + 1;
}

enum class Fold : uint8_t { kSum, kMean, kProd, kMax, kMin };

// `skips_nan`: the largest and smallest leave NaN out; otherwise a NaN replaces what came before
// it, and is replaced by what comes next.
template <Fold kFold, class C>
C Joined(C a, C b, bool skips_nan) {
  if constexpr (kFold == Fold::kProd) return WrapMul(a, b);
  if constexpr (kFold == Fold::kMax) return skips_nan ? (b > a ? b : a) : (a > b ? a : b);
  if constexpr (kFold == Fold::kMin) return skips_nan ? (b < a ? b : a) : (a < b ? a : b);
  return WrapAdd(a, b);
}

// What a segment of several rows begins with.
template <Fold kFold, class C>
C First(C value, bool skips_nan) {
  using Limits = std::numeric_limits<C>;
  if constexpr (kFold == Fold::kMax)
    return Joined<kFold, C>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest(), value,
                            skips_nan);
  if constexpr (kFold == Fold::kMin)
    return Joined<kFold, C>(Limits::has_infinity ? Limits::infinity() : Limits::max(), value,
                            skips_nan);
  return value;
}

// Of rows of `columns` elements, how many TensorFlow folds by vectors: there, and only there, its
// largest and smallest of several rows leave NaN out.
template <class T>
int64_t VectorColumns(int64_t columns) {
  constexpr int64_t kLanes = sizeof(T) == sizeof(double) ? 4 : 8;
  return columns - columns % kLanes;
}

// Segments without elements hold 1 for products and 0 otherwise.
template <Fold kFold, class T>
absl::Status Segment(const KernelContext& ctx) {
  using C = Compute<T>;
  const TensorView& data = ctx.in(0);
  IntList ids;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &ids));
  Shape shape = data.shape;
  if (shape.rank() == 0 || shape.dim(0) != static_cast<int64_t>(ids.size()))
    return absl::InvalidArgumentError(
        absl::StrCat(ids.size(), " segment ids for data of shape ", shape.ToString()));
  const int64_t slice = ids.empty() ? 0 : data.elements() / shape.dim(0);
  FLOE_ASSIGN_OR_RETURN(const int64_t segments, SegmentCount(ids));
  shape.set_dim(0, segments);
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, data.dtype, shape));
  std::fill_n(out.as<T>(), out.elements(), static_cast<T>(C(kFold == Fold::kProd ? 1 : 0)));
  std::vector<C> row(slice);
  const int64_t vectors = VectorColumns<T>(slice);
  for (size_t i = 0; i < ids.size();) {
    const size_t begin = i;
    const bool several = i + 1 < ids.size() && ids[i + 1] == ids[i];
    for (; i < ids.size() && ids[i] == ids[begin]; ++i) {
      const T* from = data.as<T>() + static_cast<int64_t>(i) * slice;
      for (int64_t k = 0; k < slice; ++k) {
        const C value = static_cast<C>(from[k]);
        const C folded = i != begin ? Joined<kFold>(row[k], value, k < vectors)
                         : several  ? First<kFold>(value, k < vectors)
                                    : value;
        row[k] = static_cast<C>(static_cast<T>(folded));  // 16-bit floats round at every step
      }
    }
    T* to = out.as<T>() + ids[begin] * slice;
    for (int64_t k = 0; k < slice; ++k) {
      if constexpr (kFold == Fold::kMean) row[k] = row[k] / static_cast<C>(i - begin);
      to[k] = static_cast<T>(row[k]);
    }
  }
  return absl::OkStatus();
}

template <Fold kFold, class... Ts>
bool RegisterSegments(const char* name, TypeList<Ts...>) {
  (KernelRegistrar(name, DeviceKind::kCpu, {kDTypeOf<Ts>}, &MakeFunction<&Segment<kFold, Ts>>),
   ...);
  return true;
}
const bool kSegments[] = {RegisterSegments<Fold::kSum>("SegmentSum", Numbers{}),
                          RegisterSegments<Fold::kMean>("SegmentMean", Numbers{}),
                          RegisterSegments<Fold::kProd>("SegmentProd", Numbers{}),
                          RegisterSegments<Fold::kMax>("SegmentMax", Reals{}),
                          RegisterSegments<Fold::kMin>("SegmentMin", Reals{})};

// Allocates what the last id asks for, then runs the kernel for a known number of segments.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSparseSegment(const KernelArgs& args) {
  std::string op = args.node.op->name;
  op = op.substr(0, op.size() - std::string("ToLastId").size()) + "WithNumSegments";
  const KernelFactory factory = FindKernel(op, DeviceKind::kCpu, args.inputs[0].type.dtype);
  if (factory == nullptr) return NoKernel(args.node.op->name.c_str(), args.inputs[0].type.dtype);
  FLOE_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> sized, factory(args));
  return FromFunction([sized](const KernelContext& ctx) -> absl::Status {
    IntList ids;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &ids));
    FLOE_ASSIGN_OR_RETURN(const int64_t segments, SegmentCount(ids));
    Shape shape = ctx.in(0).shape;
    shape.set_dim(0, segments);
    FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, ctx.in(0).dtype, shape));
    KernelContext inner = ctx;
    inner.outputs = absl::MakeConstSpan(&out, 1);
    return sized->Run(inner);
  });
}

FLOE_REGISTER_KERNEL(Where, kCpu, MakeFunction<&Where>);
FLOE_REGISTER_KERNEL(Unique, kCpu, MakeUnique<false>);
FLOE_REGISTER_KERNEL(UniqueWithCounts, kCpu, MakeUnique<true>);
FLOE_REGISTER_KERNEL(ListDiff, kCpu, MakeListDiff);
FLOE_REGISTER_KERNEL(DynamicPartition, kCpu, MakePartition);
FLOE_REGISTER_KERNEL(SparseSegmentSumToLastId, kCpu, MakeSparseSegment);
FLOE_REGISTER_KERNEL(SparseSegmentMeanToLastId, kCpu, MakeSparseSegment);
FLOE_REGISTER_KERNEL(SparseSegmentSqrtNToLastId, kCpu, MakeSparseSegment);

}  // namespace
}  // namespace floe::kernels
