// Ops that combine rows by segment: of sorted ids, of ids in any order, and of picked rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

enum class Fold : uint8_t { kSum, kProd, kMax, kMin };

// The largest finite value of a type.
template <class T>
Compute<T> Largest() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1.fep127f;
  return std::numeric_limits<Compute<T>>::max();
}

template <Fold kFold, class T>
T FoldStart() {
  using C = Compute<T>;
  if constexpr (kFold == Fold::kMax)
    return T(std::is_integral_v<T> ? std::numeric_limits<C>::lowest() : C(0) - Largest<T>());
  if constexpr (kFold == Fold::kMin) return T(Largest<T>());
  return T(C(kFold == Fold::kProd ? 1 : 0));
}
template <Fold kFold, class T>
T Join(T a, T b) {
  using C = Compute<T>;
  const C x = static_cast<C>(a), y = static_cast<C>(b);
  if constexpr (kFold == Fold::kSum) return static_cast<T>(WrapAdd(x, y));
  if constexpr (kFold == Fold::kProd) return static_cast<T>(WrapMul(x, y));
  // As in TensorFlow a NaN replaces what came before it, and is replaced by what comes next.
  if constexpr (kFold == Fold::kMax) return x > y ? a : b;
  if constexpr (kFold == Fold::kMin) return x < y ? a : b;
}

// Negative ids are left out.
template <Fold kFold, class T>
absl::Status UnsortedSegment(const KernelContext& ctx) {
  const TensorView &data = ctx.in(0), &out = ctx.out(0);
  IntList ids;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &ids));
  const Shape& prefix = ctx.in(1).shape;
  if (prefix.rank() > data.shape.rank() ||
      !std::equal(prefix.dims().begin(), prefix.dims().end(), data.shape.dims().begin()))
    return absl::InvalidArgumentError(absl::StrCat("segment ids ", prefix.ToString(),
                                                   " are no prefix of ", data.shape.ToString()));
  const int64_t segments = out.shape.dim(0);
  std::fill_n(out.as<T>(), out.elements(), FoldStart<kFold, T>());
  const int64_t slice = ids.empty() ? 0 : data.elements() / static_cast<int64_t>(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    if (ids[i] >= segments)
      return absl::InvalidArgumentError(
          absl::StrCat("segment id ", ids[i], " is not below ", segments));
    T* to = out.as<T>() + ids[i] * slice;
    const T* from = data.as<T>() + static_cast<int64_t>(i) * slice;
    for (int64_t k = 0; k < slice; ++k) to[k] = Join<kFold>(to[k], from[k]);
  }
  return absl::OkStatus();
}

FLOE_REGISTER_WIDENED(UnsortedSegmentSum, (MakeFunction<&UnsortedSegment<Fold::kSum, T>>), kWrap,
                      WideNumbers);
FLOE_REGISTER_WIDENED(UnsortedSegmentProd, (MakeFunction<&UnsortedSegment<Fold::kProd, T>>), kWrap,
                      WideNumbers);
FLOE_REGISTER_WIDENED(UnsortedSegmentMax, (MakeFunction<&UnsortedSegment<Fold::kMax, T>>), kClamp,
                      WideReals);
FLOE_REGISTER_WIDENED(UnsortedSegmentMin, (MakeFunction<&UnsortedSegment<Fold::kMin, T>>), kClamp,
                      WideReals);

// ---- sorted ids ----

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

// `skips_nan`: the largest and smallest leave NaN out; otherwise a NaN replaces what came before
// it, and is replaced by what comes next.
template <Fold kFold, class C>
C JoinSorted(C a, C b, bool skips_nan) {
  if constexpr (kFold == Fold::kProd) return WrapMul(a, b);
  if constexpr (kFold == Fold::kMax) return skips_nan ? (b > a ? b : a) : (a > b ? a : b);
  if constexpr (kFold == Fold::kMin) return skips_nan ? (b < a ? b : a) : (a < b ? a : b);
  return WrapAdd(a, b);
}

// What a segment of several rows begins with.
template <Fold kFold, class C>
C FirstOf(C value, bool skips_nan) {
  using Limits = std::numeric_limits<C>;
  if constexpr (kFold == Fold::kMax)
    return JoinSorted<kFold, C>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
                                value, skips_nan);
  if constexpr (kFold == Fold::kMin)
    return JoinSorted<kFold, C>(Limits::has_infinity ? Limits::infinity() : Limits::max(), value,
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
absl::Status SortedSegment(const KernelContext& ctx) {
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
  BudgetVector<C> row(slice);
  const int64_t vectors = VectorColumns<T>(slice);
  for (size_t i = 0; i < ids.size();) {
    const size_t begin = i;
    const bool several = i + 1 < ids.size() && ids[i + 1] == ids[i];
    for (; i < ids.size() && ids[i] == ids[begin]; ++i) {
      const T* from = data.as<T>() + static_cast<int64_t>(i) * slice;
      for (int64_t k = 0; k < slice; ++k) {
        const C value = static_cast<C>(from[k]);
        const C folded = i != begin ? JoinSorted<kFold>(row[k], value, k < vectors)
                         : several  ? FirstOf<kFold>(value, k < vectors)
                                    : value;
        row[k] = static_cast<C>(static_cast<T>(folded));  // 16-bit floats round at every step
      }
    }
    T* to = out.as<T>() + ids[begin] * slice;
    for (int64_t k = 0; k < slice; ++k) to[k] = static_cast<T>(row[k]);
  }
  return absl::OkStatus();
}

FLOE_REGISTER_WIDENED(SegmentSum, (MakeFunction<&SortedSegment<Fold::kSum, T>>), kWrap,
                      WideNumbers);
FLOE_REGISTER_WIDENED(SegmentProd, (MakeFunction<&SortedSegment<Fold::kProd, T>>), kWrap,
                      WideNumbers);
FLOE_REGISTER_WIDENED(SegmentMax, (MakeFunction<&SortedSegment<Fold::kMax, T>>), kWrap, WideReals);
FLOE_REGISTER_WIDENED(SegmentMin, (MakeFunction<&SortedSegment<Fold::kMin, T>>), kWrap, WideReals);

// Remembers what it gave.
class NotingAllocator final : public OutputAllocator {
 public:
  explicit NotingAllocator(OutputAllocator* own) : own_(own) {}
  absl::StatusOr<TensorView> Allocate(int output, DType dtype, const Shape& shape) override {
    FLOE_ASSIGN_OR_RETURN(given_, own_->Allocate(output, dtype, shape));
    return given_;
  }
  const TensorView& given() const { return given_; }

 private:
  OutputAllocator* own_;
  TensorView given_;
};

// Sums, then divides each segment by its number of rows, in the data's own dtype.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSegmentMean(const KernelArgs& args) {
  const KernelFactory factory =
      FindKernel("SegmentSum", DeviceKind::kCpu, args.inputs[0].type.dtype);
  if (factory == nullptr) return absl::InternalError("SegmentSum has no kernel of this dtype");
  FLOE_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> sum, factory(args));
  return FromFunction([sum](const KernelContext& ctx) -> absl::Status {
    NotingAllocator allocator(ctx.allocator);
    KernelContext inner = ctx;
    inner.allocator = &allocator;
    FLOE_RETURN_IF_ERROR(sum->Run(inner));
    const TensorView& out = allocator.given();
    IntList ids;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &ids));
    const int64_t slice = ids.empty() ? 0 : out.elements() / (ids.back() + 1);
    ForDType(out.dtype, Numbers{}, [&](auto type) {
      using T = decltype(type);
      using C = Compute<T>;
      for (size_t i = 0, begin = 0; i < ids.size(); begin = i) {
        while (i < ids.size() && ids[i] == ids[begin]) ++i;
        T* const to = out.as<T>() + ids[begin] * slice;
        const C rows = static_cast<C>(i - begin);
        for (int64_t k = 0; k < slice; ++k) to[k] = static_cast<T>(C(static_cast<C>(to[k]) / rows));
      }
    });
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNELS(SegmentMean, kCpu, MakeSegmentMean, Numbers);

// ---- rows picked by indices ----

enum class Scale : uint8_t { kNone, kMean, kSqrt };

template <Scale kScale, class T>
absl::Status SparseSegment(const KernelContext& ctx) {
  using C = Compute<T>;
  const TensorView &data = ctx.in(0), &out = ctx.out(0);
  IntList indices, ids;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &indices));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &ids));
  if (indices.size() != ids.size())
    return absl::InvalidArgumentError(
        absl::StrCat(indices.size(), " indices for ", ids.size(), " segment ids"));
  const int64_t rows = data.shape.dim(0), segments = out.shape.dim(0);
  const int64_t slice = rows == 0 ? 0 : data.elements() / rows;
  std::fill_n(out.as<T>(), out.elements(), static_cast<T>(C(0)));
  BudgetVector<C> sums(slice);  // of one segment; wider than 16-bit floats, as TensorFlow's
  for (size_t i = 0; i < ids.size();) {
    size_t end = i;
    while (end < ids.size() && ids[end] == ids[i]) ++end;
    if (ids[i] < 0 || ids[i] >= segments)
      return absl::InvalidArgumentError(
          absl::StrCat("segment id ", ids[i], " is not in [0, ", segments, ")"));
    T* to = out.as<T>() + ids[i] * slice;
    std::fill(sums.begin(), sums.end(), C(0));
    const auto count = static_cast<C>(end - i);
    for (size_t k = i; k < end; ++k) {
      if (indices[k] < 0 || indices[k] >= rows)
        return absl::InvalidArgumentError(
            absl::StrCat("index ", indices[k], " is not in [0, ", rows, ")"));
      const T* from = data.as<T>() + indices[k] * slice;
      for (int64_t j = 0; j < slice; ++j) sums[j] = WrapAdd(sums[j], static_cast<C>(from[j]));
    }
    const C divisor = kScale == Scale::kMean ? count : static_cast<C>(std::sqrt(count));
    for (int64_t j = 0; j < slice; ++j)
      to[j] = static_cast<T>(kScale == Scale::kNone ? sums[j] : static_cast<C>(sums[j] / divisor));
    i = end;
  }
  return absl::OkStatus();
}
FLOE_REGISTER_WIDENED(SparseSegmentSum, (MakeFunction<&SparseSegment<Scale::kNone, T>>), kWrap,
                      WideReals);
FLOE_REGISTER_KERNELS(SparseSegmentMean, kCpu, (MakeFunction<&SparseSegment<Scale::kMean, T>>),
                      Floats);
FLOE_REGISTER_KERNELS(SparseSegmentSqrtN, kCpu, (MakeFunction<&SparseSegment<Scale::kSqrt, T>>),
                      Floats);
FLOE_REGISTER_WIDENED(SparseSegmentSumWithNumSegments,
                      (MakeFunction<&SparseSegment<Scale::kNone, T>>), kWrap, WideReals);
FLOE_REGISTER_KERNELS(SparseSegmentMeanWithNumSegments, kCpu,
                      (MakeFunction<&SparseSegment<Scale::kMean, T>>), Floats);
FLOE_REGISTER_KERNELS(SparseSegmentSqrtNWithNumSegments, kCpu,
                      (MakeFunction<&SparseSegment<Scale::kSqrt, T>>), Floats);

// Allocates what the last id asks for, then runs the kernel for a known number of segments.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSparseSegment(const KernelArgs& args) {
  std::string op = args.node.op->name;
  op = op.substr(0, op.size() - std::string("ToLastId").size()) + "WithNumSegments";
  const KernelFactory factory = FindKernel(op, DeviceKind::kCpu, args.inputs[0].type.dtype);
  if (factory == nullptr)
    return absl::UnimplementedError(absl::StrCat(op, " of ", DTypeName(args.inputs[0].type.dtype)));
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
FLOE_REGISTER_KERNEL(SparseSegmentSumToLastId, kCpu, MakeSparseSegment);
FLOE_REGISTER_KERNEL(SparseSegmentMeanToLastId, kCpu, MakeSparseSegment);
FLOE_REGISTER_KERNEL(SparseSegmentSqrtNToLastId, kCpu, MakeSparseSegment);

}  // namespace
}  // namespace floe::kernels
