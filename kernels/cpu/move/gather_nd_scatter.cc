// Ops that read or write places named by index tensors: GatherNd, ScatterNd, TensorScatter*,
// SparseToDense, OneHot, DynamicStitch, InvertPermutation.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

absl::Status OutsideError(absl::Span<const int64_t> place, const Shape& shape) {
  std::string text;
  for (int64_t p : place) absl::StrAppend(&text, text.empty() ? "" : ",", p);
  return absl::InvalidArgumentError(
      absl::StrCat("index [", text, "] is outside ", shape.ToString()));
}

// Offset, in slices of the dims behind `depth`, of the place that `depth` indices name after `skip`
// dims; -1 when outside.
int64_t PlaceOf(const int64_t* index, int depth, const Shape& shape, int skip) {
  int64_t at = 0;
  for (int i = 0; i < depth; ++i) {
    const int64_t size = shape.dim(skip + i);
    if (index[i] < 0 || index[i] >= size) return -1;
    at = at * size + index[i];
  }
  return at;
}

int64_t SizeBehind(const Shape& shape, int axis) {
  int64_t size = 1;
  for (int i = axis; i < shape.rank(); ++i) size *= shape.dim(i);
  return size;
}

// `ignore`: places outside give zeros.
absl::Status GatherNd(const KernelContext& ctx, int batch_dims, bool ignore) {
  const Shape &params = ctx.in(0).shape, &indices = ctx.in(1).shape;
  if (ctx.out(0).elements() == 0) return absl::OkStatus();
  for (int i = 0; i < batch_dims; ++i) {
    if (params.dim(i) != indices.dim(i))
      return absl::InvalidArgumentError(absl::StrCat("batch dimensions of ", params.ToString(),
                                                     " and ", indices.ToString(), " differ"));
  }
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &values));
  const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
  const int64_t slice = SizeBehind(params, batch_dims + depth),
                batch_slice = SizeBehind(params, batch_dims);
  int64_t batches = 1, places = 1;
  for (int i = 0; i + 1 < indices.rank(); ++i)
    (i < batch_dims ? batches : places) *= indices.dim(i);
  for (int64_t k = 0; k < batches * places; ++k) {
    const int64_t* index = values.data() + k * depth;
    const int64_t at = PlaceOf(index, depth, params, batch_dims);
    if (at >= 0) {
      CopyElements(ctx.in(0).dtype, ElementAt(ctx.in(0), k / places * batch_slice + at * slice),
                   ElementAt(ctx.out(0), k * slice), slice);
    } else if (ignore) {
      ForElement(ctx.out(0).dtype, [&](auto element) {
        std::fill_n(ctx.out(0).as<decltype(element)>() + k * slice, slice, decltype(element){});
      });
    } else {
      return OutsideError({index, static_cast<size_t>(depth)}, params);
    }
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeGatherNd(const KernelArgs& args) {
  const int batch_dims = static_cast<int>(args.node.attrs.Int("batch_dims"));
  const bool ignore = args.node.attrs.String("bad_indices_policy") == "IGNORE";
  return FromFunction(
      [batch_dims, ignore](const KernelContext& ctx) { return GatherNd(ctx, batch_dims, ignore); });
}
FLOE_REGISTER_KERNEL(GatherNd, kCpu, MakeGatherNd);

enum class Update : uint8_t { kSet, kAdd, kSub, kMin, kMax };

template <Update kUpdate, class T>
T Combine(T old, T value) {
  using C = Compute<T>;
  const C a = static_cast<C>(old), b = static_cast<C>(value);
  if constexpr (kUpdate == Update::kAdd) return static_cast<T>(WrapAdd(a, b));
  if constexpr (kUpdate == Update::kSub) return static_cast<T>(WrapSub(a, b));
  if constexpr (kUpdate == Update::kMin) return b < a ? value : old;
  if constexpr (kUpdate == Update::kMax) return b > a ? value : old;
  return value;
}

// out[indices[k]] = combine(out[indices[k]], updates[k]), one k after the other.
template <class Slice>
absl::Status ForPlaces(const KernelContext& ctx, const TensorView& indices, const Slice& slice_at) {
  const Shape& out = ctx.out(0).shape;
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(indices, &values));
  const int rank = indices.shape.rank();
  const int depth = rank == 0 ? 1 : static_cast<int>(indices.shape.dim(rank - 1));
  if (depth > out.rank())
    return absl::InvalidArgumentError(
        absl::StrCat("indices ", indices.shape.ToString(), " for ", out.ToString()));
  const int64_t slice = SizeBehind(out, depth);
  // Nothing to write, or indices of no numbers in one place: of these there may be any number.
  if (slice == 0) return absl::OkStatus();
  int64_t places = 1;
  for (int i = 0; i + 1 < rank; ++i) places *= indices.shape.dim(i);
  for (int64_t k = 0; k < places; ++k) {
    const int64_t* index = values.data() + k * depth;
    const int64_t at = PlaceOf(index, depth, out, 0);
    if (at < 0) return OutsideError({index, static_cast<size_t>(depth)}, out);
    slice_at(k * slice, at * slice, slice);
  }
  return absl::OkStatus();
}

// The updates are [places of the indices..., slice...].
absl::Status CheckUpdates(const Shape& indices, const Shape& updates, const Shape& out) {
  const int rank = indices.rank();
  const int64_t depth = rank == 0 ? -1 : indices.dim(rank - 1);
  Shape wanted;
  for (int i = 0; i + 1 < rank; ++i) wanted.push_back(indices.dim(i));
  for (int64_t i = depth; i >= 0 && i < out.rank(); ++i)
    wanted.push_back(out.dim(static_cast<int>(i)));
  if (depth >= 0 && depth <= out.rank() && updates == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("updates ", updates.ToString(), " at indices ",
                                                 indices.ToString(), " do not fit ",
                                                 out.ToString()));
}

template <Update kUpdate, class T>
absl::Status Scatter(const KernelContext& ctx, const TensorView& indices,
                     const TensorView& updates) {
  FLOE_RETURN_IF_ERROR(CheckUpdates(indices.shape, updates.shape, ctx.out(0).shape));
  T* y = ctx.out(0).as<T>();
  const T* u = updates.as<T>();
  return ForPlaces(ctx, indices, [&](int64_t from, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[to + i] = Combine<kUpdate>(y[to + i], u[from + i]);
  });
}

template <Update kUpdate, class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeTensorScatter(const KernelArgs&) {
  return FromFunction([](const KernelContext& ctx) {
    if (ctx.out(0).data != ctx.in(0).data)
      CopyElements(ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, ctx.in(0).elements());
    return Scatter<kUpdate, T>(ctx, ctx.in(1), ctx.in(2));
  });
}

absl::Status TensorScatterUpdate(const KernelContext& ctx) {
  const TensorView& out = ctx.out(0);
  FLOE_RETURN_IF_ERROR(CheckUpdates(ctx.in(1).shape, ctx.in(2).shape, out.shape));
  if (out.data != ctx.in(0).data) CopyElements(out.dtype, ctx.in(0).data, out.data, out.elements());
  return ForPlaces(ctx, ctx.in(1), [&](int64_t from, int64_t to, int64_t n) {
    CopyElements(out.dtype, ElementAt(ctx.in(2), from), ElementAt(out, to), n);
  });
}
FLOE_REGISTER_KERNEL(TensorScatterUpdate, kCpu, MakeFunction<TensorScatterUpdate>);

// Repeated places add up: booleans by "or", strings one behind the other.
absl::Status ScatterNd(const KernelContext& ctx) {
  const TensorView& out = ctx.out(0);
  if (IsNarrowInteger(out.dtype))
    return RunWidened(ctx, out.dtype, DType::kInt64, Widening::kWrap, 0, ScatterNd);
  absl::Status status =
      absl::UnimplementedError(absl::StrCat("ScatterNd of ", DTypeName(out.dtype)));
  const auto scatter = [&](auto t) {
    using T = decltype(t);
    std::fill_n(out.as<T>(), out.elements(), T{});
    status = Scatter<Update::kAdd, T>(ctx, ctx.in(0), ctx.in(1));
  };
  if (!ForDType(out.dtype, WideNumbers{}, scatter))
    ForDType(out.dtype, TypeList<bool, std::string>{}, scatter);
  return status;
}
FLOE_REGISTER_KERNEL(ScatterNd, kCpu, MakeFunction<ScatterNd>);

FLOE_REGISTER_WIDENED(TensorScatterAdd, (MakeTensorScatter<Update::kAdd, T>), kWrap, WideNumbers);
FLOE_REGISTER_WIDENED(TensorScatterSub, (MakeTensorScatter<Update::kSub, T>), kWrap, WideNumbers);
FLOE_REGISTER_WIDENED(TensorScatterMin, (MakeTensorScatter<Update::kMin, T>), kWrap, WideReals);
FLOE_REGISTER_WIDENED(TensorScatterMax, (MakeTensorScatter<Update::kMax, T>), kWrap, WideReals);

// Places that never repeat and follow each other in the order of memory.
absl::Status CheckOrder(const TensorView& indices) {
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(indices, &values));
  const int64_t depth = indices.shape.dim(1);
  for (int64_t k = 1; k < indices.shape.dim(0); ++k) {
    const int64_t* place = values.data() + k * depth;
    if (!std::lexicographical_compare(place - depth, place, place, place + depth))
      return absl::InvalidArgumentError(
          absl::StrCat("index ", k, " repeats the one before or is out of order"));
  }
  return absl::OkStatus();
}

// Inputs: indices, shape, values (one for all, or each its own), default. Indices of rank 0 and 1
// name places of a vector.
absl::Status SparseToDense(const KernelContext& ctx, bool check) {
  const TensorView &out = ctx.out(0), &values = ctx.in(2);
  TensorView indices = ctx.in(0);
  if (indices.shape.rank() < 2) indices.shape = Shape({indices.elements(), 1});
  if (indices.shape.rank() != 2 || indices.shape.dim(1) != out.shape.rank() ||
      (values.shape.rank() != 0 && values.elements() != indices.shape.dim(0)))
    return absl::InvalidArgumentError(absl::StrCat("indices ", indices.shape.ToString(),
                                                   " of values ", values.shape.ToString(), " into ",
                                                   out.shape.ToString()));
  if (out.shape.rank() == 0 && indices.shape.dim(0) > 1)
    return absl::InvalidArgumentError(
        absl::StrCat(indices.shape.dim(0), " values for the one place of a scalar"));
  if (check) FLOE_RETURN_IF_ERROR(CheckOrder(indices));
  FillElements(out.dtype, ctx.in(3).data, out.data, out.elements());
  return ForPlaces(ctx, indices, [&](int64_t from, int64_t to, int64_t) {
    const int64_t at = values.shape.rank() == 0 ? 0 : from;
    CopyElements(out.dtype, ElementAt(values, at), ElementAt(out, to), 1);
  });
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeSparseToDense(const KernelArgs& args) {
  const bool check = args.node.attrs.Bool("validate_indices", true);
  return FromFunction([check](const KernelContext& ctx) { return SparseToDense(ctx, check); });
}
FLOE_REGISTER_KERNEL(SparseToDense, kCpu, MakeSparseToDense);

absl::Status OneHot(const KernelContext& ctx, int64_t axis_attr) {
  const TensorView &in = ctx.in(0), &out = ctx.out(0);
  const int axis = static_cast<int>(axis_attr < 0 ? axis_attr + out.shape.rank() : axis_attr);
  const int64_t inner = SizeBehind(in.shape, axis), depth = out.shape.dim(axis);
  FillElements(out.dtype, ctx.in(3).data, out.data, out.elements());
  const bool found =
      ForDType(in.dtype, TypeList<int32_t, int64_t, uint8_t, int8_t, int16_t>{}, [&](auto t) {
        const auto* index = in.as<decltype(t)>();
        ForElement(out.dtype, [&](auto element) {
          using T = decltype(element);
          for (int64_t i = 0; i < in.elements(); ++i) {
            if (index[i] < 0 || static_cast<int64_t>(index[i]) >= depth) continue;
            out.as<T>()[(i / inner * depth + index[i]) * inner + i % inner] = *ctx.in(2).as<T>();
          }
        });
      });
  return found ? absl::OkStatus()
               : absl::UnimplementedError(absl::StrCat("OneHot of ", DTypeName(in.dtype)));
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeOneHot(const KernelArgs& args) {
  const int64_t axis = args.node.attrs.Int("axis", -1);
  return FromFunction([axis](const KernelContext& ctx) { return OneHot(ctx, axis); });
}
FLOE_REGISTER_KERNEL(OneHot, kCpu, MakeOneHot);

absl::Status InvertPermutation(const KernelContext& ctx) {
  IntList values;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &values));
  const auto n = static_cast<int64_t>(values.size());
  absl::InlinedVector<bool, 64> seen(values.size(), false);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t to = values[i];
    if (to < 0 || to >= n || seen[to])
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " = ", to, " makes no permutation of ", n));
    seen[to] = true;
    if (ctx.out(0).dtype == DType::kInt64)
      ctx.out(0).as<int64_t>()[to] = i;
    else
      ctx.out(0).as<int32_t>()[to] = static_cast<int32_t>(i);
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(InvertPermutation, kCpu, MakeFunction<InvertPermutation>);

// Later inputs win; places that no index names are zero.
absl::Status DynamicStitch(const KernelContext& ctx) {
  const size_t n = ctx.inputs.size() / 2;
  const TensorView& out = ctx.out(0);
  const int64_t slice = SizeBehind(out.shape, 1);
  if (out.bytes() != 0) std::memset(out.data, 0, out.bytes());
  for (size_t k = 0; k < n; ++k) {
    IntList indices;
    FLOE_RETURN_IF_ERROR(ReadInts(ctx.inputs[k], &indices));
    Shape wanted = ctx.inputs[k].shape;
    for (int axis = 1; axis < out.shape.rank(); ++axis) wanted.push_back(out.shape.dim(axis));
    if (ctx.inputs[n + k].shape != wanted)
      return absl::InvalidArgumentError(
          absl::StrCat("data ", ctx.inputs[n + k].shape.ToString(), " for indices of shape ",
                       ctx.inputs[k].shape.ToString(), ", expected ", wanted.ToString()));
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= out.shape.dim(0))
        return OutsideError({&indices[i], 1}, out.shape);
      CopyElements(out.dtype, ElementAt(ctx.inputs[n + k], static_cast<int64_t>(i) * slice),
                   ElementAt(out, indices[i] * slice), slice);
    }
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(DynamicStitch, kCpu, MakeFunction<DynamicStitch>);

}  // namespace
}  // namespace floe::kernels
