// Ops that combine rows by segment, count, or run along an axis: segments, DenseBincount, TopKV2,
// ApproxTopK, Cumsum, Cumprod, CumulativeLogsumexp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/float_order.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"

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

template <Fold kFold, class... Ts>
bool RegisterUnsorted(const char* name, TypeList<Ts...>) {
  (KernelRegistrar(name, DeviceKind::kCpu, {kDTypeOf<Ts>},
                   &MakeFunction<&UnsortedSegment<kFold, Ts>>),
   ...);
  return true;
}
const bool kUnsorted[] = {RegisterUnsorted<Fold::kSum>("UnsortedSegmentSum", Numbers{}),
                          RegisterUnsorted<Fold::kProd>("UnsortedSegmentProd", Numbers{}),
                          RegisterUnsorted<Fold::kMax>("UnsortedSegmentMax", Reals{}),
                          RegisterUnsorted<Fold::kMin>("UnsortedSegmentMin", Reals{})};

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
template <class... Ts>
bool RegisterSparse(TypeList<Ts...>) {
  for (const char* suffix : {"", "WithNumSegments"}) {
    (KernelRegistrar(absl::StrCat("SparseSegmentMean", suffix), DeviceKind::kCpu, {kDTypeOf<Ts>},
                     &MakeFunction<&SparseSegment<Scale::kMean, Ts>>),
     ...);
    (KernelRegistrar(absl::StrCat("SparseSegmentSqrtN", suffix), DeviceKind::kCpu, {kDTypeOf<Ts>},
                     &MakeFunction<&SparseSegment<Scale::kSqrt, Ts>>),
     ...);
  }
  return true;
}
template <class... Ts>
bool RegisterSparseSum(TypeList<Ts...>) {
  for (const char* suffix : {"", "WithNumSegments"}) {
    (KernelRegistrar(absl::StrCat("SparseSegmentSum", suffix), DeviceKind::kCpu, {kDTypeOf<Ts>},
                     &MakeFunction<&SparseSegment<Scale::kNone, Ts>>),
     ...);
  }
  return true;
}
const bool kSparse[] = {RegisterSparse(Floats{}), RegisterSparseSum(Reals{})};

// Counts, or sums of weights, of each value below the size; with `binary`, 1 for what occurs.
absl::Status Bincount(const KernelContext& ctx, bool binary) {
  const TensorView &out = ctx.out(0), &weights = ctx.in(2);
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &values));
  const int64_t size = out.shape.dim(out.shape.rank() - 1);
  const int64_t rows = out.shape.rank() == 2 ? out.shape.dim(0) : 1;
  const int64_t width = rows == 0 ? 0 : static_cast<int64_t>(values.size()) / rows;
  const bool weighted =
      weights.elements() == static_cast<int64_t>(values.size()) && !values.empty();
  for (int64_t v : values) {
    if (v < 0) return absl::InvalidArgumentError(absl::StrCat("value ", v, " is negative"));
  }
  const bool found = ForDType(out.dtype, TypeList<int32_t, int64_t, float, double>{}, [&](auto t) {
    using T = decltype(t);
    T* y = out.as<T>();
    std::fill_n(y, out.elements(), T(0));
    for (int64_t i = 0; i < rows * width; ++i) {
      if (values[i] >= size) continue;
      T& cell = y[i / width * size + values[i]];
      cell = binary ? T(1) : WrapAdd(cell, weighted ? weights.as<T>()[i] : T(1));
    }
  });
  return found ? absl::OkStatus()
               : absl::UnimplementedError(absl::StrCat("DenseBincount of ", DTypeName(out.dtype)));
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeBincount(const KernelArgs& args) {
  const bool binary = args.node.attrs.Bool("binary_output");
  return FromFunction([binary](const KernelContext& ctx) { return Bincount(ctx, binary); });
}
FLOE_REGISTER_KERNEL(DenseBincount, kCpu, MakeBincount);

// Puts the places of the k best of n elements in order, of equal ones the first place first.
template <class T, bool kLargest>
void OrderByValue(const T* x, int64_t n, int64_t k, int64_t* order) {
  std::iota(order, order + n, 0);
  std::partial_sort(order, order + k, order + n, [x](int64_t a, int64_t b) {
    const auto va = static_cast<Compute<T>>(x[a]), vb = static_cast<Compute<T>>(x[b]);
    if constexpr (kLargest) return va > vb || (!(vb > va) && a < b);
    return va < vb || (!(vb < va) && a < b);
  });
}

// The same of floats, by numbers made of value and place. False where an element is NaN.
template <class T, bool kLargest>
bool OrderByKey(const T* x, int64_t n, int64_t k, int64_t* order) {
  BudgetVector<uint64_t> keys(n);
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(x[i]);
    if (value != value) return false;
    const uint32_t rank = OrderOf(value);
    keys[i] = uint64_t{kLargest ? ~rank : rank} << 32 | static_cast<uint64_t>(i);
  }
  if (k < n) std::nth_element(keys.begin(), keys.begin() + k, keys.end());
  std::sort(keys.begin(), keys.begin() + k);
  for (int64_t i = 0; i < k; ++i) order[i] = static_cast<uint32_t>(keys[i]);
  return true;
}

template <class T, bool kLargest>
absl::Status TopK(const KernelContext& ctx) {
  constexpr int64_t kFew = 32;  // a heap of so many costs less than keys for all
  const TensorView &in = ctx.in(0), &values = ctx.out(0), &indices = ctx.out(1);
  const int64_t n = in.shape.dim(in.shape.rank() - 1),
                k = values.shape.dim(values.shape.rank() - 1);
  if (k > n)
    return absl::InvalidArgumentError(absl::StrCat("k is ", k, ", the last dimension ", n));
  if (k == 0) return absl::OkStatus();
  BudgetVector<int64_t> order(n);
  for (int64_t row = 0; row < values.elements() / k; ++row) {
    const T* x = in.as<T>() + row * n;
    bool ordered = false;
    if constexpr (std::is_same_v<Compute<T>, float>) {
      ordered = k > kFew && n <= UINT32_MAX && OrderByKey<T, kLargest>(x, n, k, order.data());
    }
    if (!ordered) OrderByValue<T, kLargest>(x, n, k, order.data());
    for (int64_t i = 0; i < k; ++i) {
      if (values.data != nullptr) values.as<T>()[row * k + i] = x[order[i]];
      if (indices.data == nullptr) continue;
      ForDType(indices.dtype, TypeList<int16_t, int32_t, int64_t>{}, [&](auto t) {
        indices.as<decltype(t)>()[row * k + i] = static_cast<decltype(t)>(order[i]);
      });
    }
  }
  return absl::OkStatus();
}

struct ScanOptions {
  bool exclusive, reverse;
};

enum class Joined : uint8_t { kSum, kProduct, kLogSumExp };

// What comes before the first element.
template <Joined kJoined, class C>
C Neutral() {
  if constexpr (kJoined == Joined::kLogSumExp) return -std::numeric_limits<C>::infinity();
  return kJoined == Joined::kProduct ? C(1) : C(0);
}
template <Joined kJoined, class C>
C Join(C a, C b) {
  if constexpr (kJoined == Joined::kLogSumExp) {
    const C most = a < b ? b : a, least = b < a ? b : a;
    return most == Neutral<kJoined, C>() ? most : std::log1p(std::exp(least - most)) + most;
  } else {
    return kJoined == Joined::kProduct ? WrapMul(a, b) : WrapAdd(a, b);
  }
}

template <Joined kJoined, class T>
absl::Status Scan(const KernelContext& ctx, const ScanOptions& options) {
  using C = Compute<T>;
  const Shape& shape = ctx.in(0).shape;
  FLOE_ASSIGN_OR_RETURN(const int64_t axis_value, ReadInt(ctx.in(1)));
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_value, shape.rank()));
  int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
  const int64_t n = shape.dim(axis);
  if (shape.elements() == 0) return absl::OkStatus();
  const T* x = ctx.in(0).as<T>();
  T* y = ctx.out(0).as<T>();
  ParallelRange(ctx.pool, shape.elements() / n, std::max<int64_t>(1, kElementGrain / n),
                [&](int64_t begin, int64_t end) {
                  for (int64_t line = begin; line < end; ++line) {
                    const int64_t base = line / inner * n * inner + line % inner;
                    C total = Neutral<kJoined, C>();
                    for (int64_t i = 0; i < n; ++i) {
                      const int64_t at = base + (options.reverse ? n - 1 - i : i) * inner;
                      const C value = static_cast<C>(x[at]);
                      // TensorFlow keeps the total of 16-bit floats in their own type.
                      const C next = static_cast<C>(static_cast<T>(Join<kJoined>(total, value)));
                      y[at] = static_cast<T>(options.exclusive ? total : next);
                      total = next;
                    }
                  }
                });
  return absl::OkStatus();
}
template <Joined kJoined, class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScan(const KernelArgs& args) {
  const ScanOptions options{args.node.attrs.Bool("exclusive"), args.node.attrs.Bool("reverse")};
  return FromFunction(
      [options](const KernelContext& ctx) { return Scan<kJoined, T>(ctx, options); });
}

template <class... Ts>
bool RegisterScans(TypeList<Ts...>) {
  (KernelRegistrar("Cumsum", DeviceKind::kCpu, {kDTypeOf<Ts>}, &MakeScan<Joined::kSum, Ts>), ...);
  (KernelRegistrar("Cumprod", DeviceKind::kCpu, {kDTypeOf<Ts>}, &MakeScan<Joined::kProduct, Ts>),
   ...);
  return true;
}
template <class... Ts>
bool RegisterLogScans(TypeList<Ts...>) {
  (KernelRegistrar("CumulativeLogsumexp", DeviceKind::kCpu, {kDTypeOf<Ts>},
                   &MakeScan<Joined::kLogSumExp, Ts>),
   ...);
  return true;
}
template <class... Ts>
bool RegisterTopK(TypeList<Ts...>) {
  (KernelRegistrar("TopKV2", DeviceKind::kCpu, {kDTypeOf<Ts>}, &MakeFunction<&TopK<Ts, true>>),
   ...);
  return true;
}
template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeApproxTopK(const KernelArgs& args) {
  const bool largest = args.node.attrs.Bool("is_max_k", true);
  return FromFunction(largest ? &TopK<T, true> : &TopK<T, false>);
}
FLOE_REGISTER_KERNEL(ApproxTopK, kCpu, MakeApproxTopK<float>, DType::kFloat32);
FLOE_REGISTER_KERNEL(ApproxTopK, kCpu, MakeApproxTopK<Half>, DType::kFloat16);
FLOE_REGISTER_KERNEL(ApproxTopK, kCpu, MakeApproxTopK<BFloat16>, DType::kBFloat16);
const bool kAlongAxis[] = {RegisterScans(Numbers{}), RegisterLogScans(Floats{}),
                           RegisterTopK(Reals{})};

}  // namespace
}  // namespace floe::kernels
