// Sparse tensors sorted, joined, cut, added up and mixed with dense ones.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/sparse/sparse_places.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

// Numbers of the values in row-major order; those at one place keep theirs.
BudgetVector<int64_t> SortedOrder(const SparsePlaces& places) {
  BudgetVector<int64_t> order(static_cast<size_t>(places.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&places](int64_t a, int64_t b) { return places.Compare(a, places, b) < 0; });
  return order;
}

// Writes the values of `order` behind each other.
void Gather(const TensorView& values, const BudgetVector<int64_t>& order, const TensorView& to) {
  const auto step = static_cast<int64_t>(ElementBytes(values.dtype));
  for (size_t i = 0; i < order.size(); ++i) {
    CopyElements(values.dtype, values.as<std::byte>() + order[i] * step,
                 to.as<std::byte>() + static_cast<int64_t>(i) * step, 1);
  }
}

absl::Status Reorder(const KernelContext& ctx) {
  SparsePlaces places;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &places));
  const BudgetVector<int64_t> order = SortedOrder(places);
  auto* to = ctx.out(0).as<int64_t>();
  for (const int64_t i : order) to = std::copy_n(places.At(i), places.rank(), to);
  Gather(ctx.in(1), order, ctx.out(1));
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(SparseReorder, kCpu, MakeFunction<&Reorder>);

// ---- joining ----

absl::Status Concat(const KernelContext& ctx, int64_t axis) {
  const auto n = static_cast<int>(ctx.inputs.size()) / 3;
  SparsePlaces all;
  std::vector<SparsePlaces> parts(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    FLOE_RETURN_IF_ERROR(
        ReadPlaces(ctx.in(i), ctx.in(n + i), ctx.in(2 * n + i), &parts[static_cast<size_t>(i)]));
  }
  all.shape = parts[0].shape;
  const int64_t rank = all.rank(), along = axis < 0 ? axis + rank : axis;
  if (along < 0 || along >= rank)
    return absl::InvalidArgumentError(
        absl::StrCat("Concat dimension must be in range [", -rank, ", ", rank, "), got ", axis));
  all.shape[along] = 0;
  for (const SparsePlaces& part : parts) {
    bool fits = part.rank() == rank;
    for (int64_t d = 0; fits && d < rank; ++d) fits = d == along || part.shape[d] == all.shape[d];
    if (!fits)
      return absl::InvalidArgumentError("Concat shapes: all but the concat dim must be equal");
    for (int64_t i = 0; i < part.count * rank; ++i)
      all.indices.push_back(part.indices[i] + (i % rank == along ? all.shape[along] : 0));
    all.count += part.count;
    if (__builtin_add_overflow(all.shape[along], part.shape[along], &all.shape[along]))
      return absl::InvalidArgumentError("the concat dim is too large");
  }
  const BudgetVector<int64_t> order = SortedOrder(all);
  FLOE_ASSIGN_OR_RETURN(const TensorView indices,
                        ctx.allocator->Allocate(0, DType::kInt64, Shape({all.count, rank})));
  FLOE_ASSIGN_OR_RETURN(const TensorView values,
                        ctx.allocator->Allocate(1, ctx.in(n).dtype, Shape({all.count})));
  auto* to = indices.as<int64_t>();
  for (const int64_t i : order) to = std::copy_n(all.At(i), rank, to);
  // Where each value went, so that the parts' values are moved in turn.
  BudgetVector<int64_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const auto step = static_cast<int64_t>(ElementBytes(values.dtype));
  size_t next = 0;
  for (int k = 0; k < n; ++k) {
    const TensorView& from = ctx.in(n + k);
    for (int64_t i = 0; i < from.elements(); ++i, ++next)
      CopyElements(values.dtype, from.as<std::byte>() + i * step,
                   values.as<std::byte>() + place[next] * step, 1);
  }
  return Give(ctx, 2, std::vector<int64_t>(all.shape.begin(), all.shape.end()));
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeConcat(const KernelArgs& args) {
  return FromFunction([axis = args.node.attrs.Int("concat_dim")](const KernelContext& ctx) {
    return Concat(ctx, axis);
  });
}
FLOE_REGISTER_KERNEL(SparseConcat, kCpu, MakeConcat);

// ---- two sparse tensors ----

enum class Pair : uint8_t { kSum, kMaximum, kMinimum };

// What becomes of two values; where only one tensor has one, the other's is 0.
template <Pair kPair, class T>
T Join(T a, T b) {
  const auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
  if constexpr (kPair == Pair::kSum) {
    return static_cast<T>(WrapAdd(x, y));
  } else if constexpr (kPair == Pair::kMaximum) {
    return x > y ? a : b;
  } else {
    return x < y ? a : b;
  }
}

// Whether the sum of two values is kept: from 0 it is at least `least` away.
template <class T>
bool Kept(T sum, const TensorView& least) {
  if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return *least.as<Part>() <= std::abs(sum);
  } else if constexpr (std::is_unsigned_v<Compute<T>>) {
    return *least.as<T>() <= sum;
  } else {
    const auto value = static_cast<Compute<T>>(sum);
    return static_cast<Compute<T>>(*least.as<T>()) <=
           (value < 0 ? WrapSub<Compute<T>>(0, value) : value);
  }
}

template <Pair kPair, class T>
absl::Status Merge(const KernelContext& ctx) {
  SparsePlaces a, b;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &a));
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(3), ctx.in(4), ctx.in(5), &b));
  if (a.shape != b.shape) return absl::InvalidArgumentError("Operands' shapes do not match");
  const T *x = ctx.in(1).as<T>(), *y = ctx.in(4).as<T>();
  BudgetVector<int64_t> indices;
  BudgetVector<T> values;
  for (int64_t i = 0, k = 0; i < a.count || k < b.count;) {
    const int order = i == a.count ? 1 : k == b.count ? -1 : a.Compare(i, b, k);
    const T value = Join<kPair, T>(order <= 0 ? x[i] : T(0), order >= 0 ? y[k] : T(0));
    if (kPair != Pair::kSum || order != 0 || Kept(value, ctx.inputs.back())) {
      const int64_t* place = order <= 0 ? a.At(i) : b.At(k);
      indices.insert(indices.end(), place, place + a.rank());
      values.push_back(value);
    }
    if (order <= 0) ++i;
    if (order >= 0) ++k;
  }
  const auto count = static_cast<int64_t>(values.size());
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({count, a.rank()})));
  FLOE_RETURN_IF_ERROR(Give(ctx, 1, values));
  if constexpr (kPair == Pair::kSum)
    return Give(ctx, 2, std::vector<int64_t>(a.shape.begin(), a.shape.end()));
  return absl::OkStatus();
}

// Registered for any type, since the first input is of indices: the values' type is asked for.
// Where it writes such values into output kOutput, integers are widened.
template <class List, template <class> class F, int kOutput = -1>
absl::Status ByValues(const KernelContext& ctx) {
  if (kOutput >= 0 && IsNarrowInteger(ctx.in(1).dtype)) {
    return RunWidened(ctx, ctx.in(1).dtype, DType::kInt64, Widening::kWrap, kOutput,
                      ByValues<List, F>);
  }
  absl::Status status =
      absl::UnimplementedError(absl::StrCat("sparse values of ", DTypeName(ctx.in(1).dtype)));
  ForDType(ctx.in(1).dtype, List{}, [&](auto t) { status = F<decltype(t)>::Run(ctx); });
  return status;
}
template <class T>
struct SparseSum {
  static absl::Status Run(const KernelContext& ctx) { return Merge<Pair::kSum, T>(ctx); }
};
template <class T>
struct Maximum {
  static absl::Status Run(const KernelContext& ctx) { return Merge<Pair::kMaximum, T>(ctx); }
};
template <class T>
struct Minimum {
  static absl::Status Run(const KernelContext& ctx) { return Merge<Pair::kMinimum, T>(ctx); }
};
using Sums = TypeList<float, double, int8_t, int16_t, int32_t, int64_t, std::complex<float>,
                      std::complex<double>>;
FLOE_REGISTER_KERNEL(SparseAdd, kCpu, (MakeFunction<&ByValues<Sums, SparseSum>>));
FLOE_REGISTER_KERNEL(SparseSparseMaximum, kCpu, (MakeFunction<&ByValues<WideReals, Maximum, 1>>));
FLOE_REGISTER_KERNEL(SparseSparseMinimum, kCpu, (MakeFunction<&ByValues<WideReals, Minimum, 1>>));

// ---- cutting ----

absl::Status Slice(const KernelContext& ctx) {
  SparsePlaces places;
  IntList start, size;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &places));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(3), &start));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(4), &size));
  const int64_t rank = places.rank();
  if (static_cast<int64_t>(start.size()) != rank || static_cast<int64_t>(size.size()) != rank)
    return absl::InvalidArgumentError(absl::StrCat("start of ", start.size(), " and size of ",
                                                   size.size(), " for a tensor of rank ", rank));
  std::vector<int64_t> shape;
  for (int64_t d = 0; d < rank; ++d) {
    if (start[d] < 0 || size[d] < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("start ", start[d], " and size ", size[d], " must not be negative"));
    shape.push_back(std::max<int64_t>(
        0, std::min(size[d], places.shape[d] - std::min(start[d], places.shape[d]))));
  }
  BudgetVector<int64_t> order, indices;
  for (int64_t i = 0; i < places.count; ++i) {
    bool inside = true;
    for (int64_t d = 0; inside && d < rank; ++d)
      inside = places.At(i)[d] >= start[d] && places.At(i)[d] - start[d] < shape[d];
    if (!inside) continue;
    order.push_back(i);
    for (int64_t d = 0; d < rank; ++d) indices.push_back(places.At(i)[d] - start[d]);
  }
  const auto count = static_cast<int64_t>(order.size());
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({count, rank})));
  FLOE_ASSIGN_OR_RETURN(const TensorView values,
                        ctx.allocator->Allocate(1, ctx.in(1).dtype, Shape({count})));
  Gather(ctx.in(1), order, values);
  return Give(ctx, 2, shape);
}
// The first parts are one longer where the dim is no multiple of their number.
absl::Status Split(const KernelContext& ctx, int parts) {
  SparsePlaces places;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(1), ctx.in(2), ctx.in(3), &places));
  FLOE_ASSIGN_OR_RETURN(const int64_t axis, ReadInt(ctx.in(0)));
  FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, static_cast<int>(places.rank())));
  const int64_t dim = places.shape[along], size = dim / parts, longer = dim % parts;
  if (parts > dim)
    return absl::InvalidArgumentError(
        absl::StrCat("a dim of ", dim, " cannot be split into ", parts, " parts"));
  const auto begin = [&](int64_t part) { return part * size + std::min(part, longer); };
  // With parts longer than the rest, all before their end are of that length.
  const auto part_of = [&](int64_t at) {
    const int64_t border = longer * (size + 1);
    return at < border ? at / (size + 1) : longer + (at - border) / size;
  };
  BudgetVector<int64_t> next(static_cast<size_t>(parts) + 1), order(places.count);
  for (int64_t i = 0; i < places.count; ++i) ++next[part_of(places.At(i)[along]) + 1];
  for (int part = 0; part < parts; ++part) next[part + 1] += next[part];
  const BudgetVector<int64_t> first = next;
  for (int64_t i = 0; i < places.count; ++i) order[next[part_of(places.At(i)[along])]++] = i;
  const int64_t rank = places.rank();
  for (int part = 0; part < parts; ++part) {
    const BudgetVector<int64_t> mine(order.begin() + first[part], order.begin() + first[part + 1]);
    const auto count = static_cast<int64_t>(mine.size());
    FLOE_ASSIGN_OR_RETURN(const TensorView indices,
                          ctx.allocator->Allocate(part, DType::kInt64, Shape({count, rank})));
    FLOE_ASSIGN_OR_RETURN(const TensorView values,
                          ctx.allocator->Allocate(parts + part, ctx.in(2).dtype, Shape({count})));
    auto* to = indices.as<int64_t>();
    for (const int64_t i : mine) {
      std::copy_n(places.At(i), rank, to);
      to[along] -= begin(part);
      to += rank;
    }
    Gather(ctx.in(2), mine, values);
    std::vector<int64_t> shape(places.shape.begin(), places.shape.end());
    shape[along] = begin(part + 1) - begin(part);
    FLOE_RETURN_IF_ERROR(Give(ctx, 2 * parts + part, shape));
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeSplit(const KernelArgs& args) {
  const int parts = static_cast<int>(args.node.attrs.Int("num_split"));
  return FromFunction([parts](const KernelContext& ctx) { return Split(ctx, parts); });
}
FLOE_REGISTER_KERNEL(SparseSplit, kCpu, MakeSplit);

FLOE_REGISTER_KERNEL(SparseSlice, kCpu, MakeFunction<&Slice>);

// ---- adding up ----

// Row-major strides of the dims that stay, 0 for those that go; and the shape of the result.
absl::Status ReducedShape(const SparsePlaces& places, const IntList& axes, bool keep,
                          IntList* strides, Shape* shape) {
  const int64_t rank = places.rank();
  std::vector<bool> gone(static_cast<size_t>(rank));
  for (const int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
      return absl::InvalidArgumentError(absl::StrCat("Invalid reduction dimension ", axis,
                                                     ", for input with ", rank, " dimension(s)"));
    gone[static_cast<size_t>(at)] = true;
  }
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < rank; ++d) {
    if (!gone[static_cast<size_t>(d)]) kept.push_back(places.shape[d]);
    if (!gone[static_cast<size_t>(d)] || keep)
      shape->push_back(gone[static_cast<size_t>(d)] ? 1 : places.shape[d]);
  }
  FLOE_RETURN_IF_ERROR(CheckedElements(kept, sizeof(int64_t)).status());
  strides->assign(static_cast<size_t>(rank), 0);
  int64_t stride = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    if (gone[static_cast<size_t>(d)]) continue;
    (*strides)[d] = stride;
    stride *= places.shape[d];
  }
  return absl::OkStatus();
}

template <Pair kPair, class T>
absl::Status Reduce(const KernelContext& ctx, bool keep) {
  SparsePlaces places;
  IntList axes, strides;
  Shape shape;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &places));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(3), &axes));
  FLOE_RETURN_IF_ERROR(ReducedShape(places, axes, keep, &strides, &shape));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, kDTypeOf<T>, shape));
  std::fill_n(out.as<T>(), out.elements(), T(0));
  BudgetVector<bool> met(static_cast<size_t>(out.elements()));
  for (int64_t i = 0; i < places.count; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < places.rank(); ++d) at += places.At(i)[d] * strides[d];
    const T value = ctx.in(1).as<T>()[i];
    T& to = out.as<T>()[at];
    to = met[static_cast<size_t>(at)] ? Join<kPair, T>(to, value) : value;
    met[static_cast<size_t>(at)] = true;
  }
  return absl::OkStatus();
}
template <Pair kPair, class List>
absl::StatusOr<std::unique_ptr<Kernel>> MakeReduce(const KernelArgs& args) {
  return FromFunction([keep = args.node.attrs.Bool("keep_dims")](const KernelContext& ctx) {
    const auto run = [keep](const KernelContext& wide) {
      const DType dtype = wide.in(1).dtype;
      absl::Status status =
          absl::UnimplementedError(absl::StrCat("sparse values of ", DTypeName(dtype)));
      ForDType(dtype, List{}, [&](auto t) { status = Reduce<kPair, decltype(t)>(wide, keep); });
      return status;
    };
    const DType dtype = ctx.in(1).dtype;
    if (!IsNarrowInteger(dtype)) return run(ctx);
    return RunWidened(ctx, dtype, DType::kInt64, Widening::kWrap, 0, run);
  });
}
using MakeReducer = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelArgs&);
constexpr MakeReducer kMakeSum = &MakeReduce<Pair::kSum, WideNumbers>;
constexpr MakeReducer kMakeMax = &MakeReduce<Pair::kMaximum, WideReals>;
FLOE_REGISTER_KERNEL(SparseReduceSum, kCpu, kMakeSum);
FLOE_REGISTER_KERNEL(SparseReduceMax, kCpu, kMakeMax);

// ---- with a dense tensor ----

// The dense tensor is laid out over the sparse one's shape.
template <char kOp, class T>
absl::Status WithDense(const KernelContext& ctx) {
  using C = Compute<T>;
  SparsePlaces places;
  FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &places));
  const TensorView& dense = ctx.in(3);
  const int64_t offset = places.rank() - dense.shape.rank();
  IntList strides = DenseStrides(dense.shape);
  for (int d = 0; d < dense.shape.rank(); ++d) {
    if (offset < 0 || (dense.shape.dim(d) != 1 && dense.shape.dim(d) != places.shape[offset + d]))
      return absl::InvalidArgumentError(absl::StrCat(
          "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: a "
          "sparse tensor of rank ",
          places.rank(), " and ", dense.shape.ToString()));
    if (dense.shape.dim(d) == 1) strides[d] = 0;
  }
  for (int64_t i = 0; i < places.count; ++i) {
    int64_t at = 0;
    for (int d = 0; d < dense.shape.rank(); ++d) at += places.At(i)[offset + d] * strides[d];
    const auto a = static_cast<C>(ctx.in(1).as<T>()[i]), b = static_cast<C>(dense.as<T>()[at]);
    if constexpr (kOp == '/' && std::is_integral_v<C>) {
      if (b == 0) return absl::InvalidArgumentError("Integer division by zero");
      ctx.out(0).as<T>()[i] =
          static_cast<T>(std::is_signed_v<C> && b == C(-1) ? WrapSub<C>(0, a) : C(a / b));
    } else {
      ctx.out(0).as<T>()[i] = static_cast<T>(kOp == '+'   ? WrapAdd(a, b)
                                             : kOp == '*' ? WrapMul(a, b)
                                                          : C(a / b));
    }
  }
  return absl::OkStatus();
}
template <class T>
struct Plus {
  static absl::Status Run(const KernelContext& ctx) { return WithDense<'+', T>(ctx); }
};
template <class T>
struct Times {
  static absl::Status Run(const KernelContext& ctx) { return WithDense<'*', T>(ctx); }
};
template <class T>
struct Over {
  static absl::Status Run(const KernelContext& ctx) { return WithDense<'/', T>(ctx); }
};
FLOE_REGISTER_KERNEL(SparseDenseCwiseAdd, kCpu, (MakeFunction<&ByValues<WideNumbers, Plus, 0>>));
FLOE_REGISTER_KERNEL(SparseDenseCwiseMul, kCpu, (MakeFunction<&ByValues<WideNumbers, Times, 0>>));
FLOE_REGISTER_KERNEL(SparseDenseCwiseDiv, kCpu, (MakeFunction<&ByValues<WideNumbers, Over, 0>>));

template <class T>
struct DenseAdd {
  static absl::Status Run(const KernelContext& ctx) {
    SparsePlaces places;
    FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &places));
    const TensorView& dense = ctx.in(3);
    if (Shape(absl::MakeConstSpan(places.shape)) != dense.shape)
      return absl::InvalidArgumentError(
          absl::StrCat("Dimensions do not match: a sparse tensor and a dense one of shape ",
                       dense.shape.ToString()));
    const IntList strides = DenseStrides(dense.shape);
    std::copy_n(dense.as<T>(), dense.elements(), ctx.out(0).as<T>());
    for (int64_t i = 0; i < places.count; ++i) {
      int64_t at = 0;
      for (int64_t d = 0; d < places.rank(); ++d) at += places.At(i)[d] * strides[d];
      T& to = ctx.out(0).as<T>()[at];
      to = Join<Pair::kSum, T>(to, ctx.in(1).as<T>()[i]);
    }
    return absl::OkStatus();
  }
};
FLOE_REGISTER_KERNEL(SparseTensorDenseAdd, kCpu,
                     (MakeFunction<&ByValues<WideNumbers, DenseAdd, 0>>));

// Over the values of each row of the last dim, which follow each other.
template <class T>
struct Softmax {
  static absl::Status Run(const KernelContext& ctx) {
    using C = Compute<T>;
    SparsePlaces places;
    FLOE_RETURN_IF_ERROR(ReadPlaces(ctx.in(0), ctx.in(1), ctx.in(2), &places));
    const int64_t rank = places.rank();
    if (rank < 2) return absl::InvalidArgumentError("Input should have rank >= 2");
    const T* x = ctx.in(1).as<T>();
    for (int64_t from = 0, to = 0; from < places.count; from = to) {
      C largest = static_cast<C>(x[from]), sum = 0;
      for (; to < places.count &&
             std::equal(places.At(from), places.At(from) + rank - 1, places.At(to));
           ++to)
        largest = std::max(largest, static_cast<C>(x[to]));
      for (int64_t i = from; i < to; ++i) sum += std::exp(static_cast<C>(x[i]) - largest);
      for (int64_t i = from; i < to; ++i)
        ctx.out(0).as<T>()[i] = static_cast<T>(std::exp(static_cast<C>(x[i]) - largest) / sum);
    }
    return absl::OkStatus();
  }
};
using SoftmaxTypes = TypeList<float, double, Half>;
FLOE_REGISTER_KERNEL(SparseSoftmax, kCpu, (MakeFunction<&ByValues<SoftmaxTypes, Softmax>>));

}  // namespace
}  // namespace floe::kernels
