// RaggedRange, RaggedGather and RaggedTensorToSparse.
#include "kernels/cpu/ragged/ragged.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/lists/tensor_list.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {

absl::StatusOr<Splits> ReadSplits(const TensorView& view) {
  IntList read;
  FLOE_RETURN_IF_ERROR(ReadInts(view, &read));
  if (view.shape.rank() != 1 || read.empty() || read[0] != 0)
    return absl::InvalidArgumentError(absl::StrCat("row splits of shape ", view.shape.ToString(),
                                                   " are no vector that begins with 0"));
  for (size_t i = 1; i < read.size(); ++i) {
    if (read[i] < read[i - 1])
      return absl::InvalidArgumentError(
          absl::StrCat("row splits fall from ", read[i - 1], " to ", read[i], " at position ", i));
  }
  return Splits(read.begin(), read.end());
}

absl::StatusOr<std::vector<Splits>> ReadNestedSplits(const KernelContext& ctx, int first, int count,
                                                     const TensorView& values) {
  std::vector<Splits> nested;
  const auto expect = [&](int64_t rows) -> absl::Status {
    if (nested.empty() || nested.back().back() == rows) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("row splits end with ", nested.back().back(),
                                                   ", the next level has ", rows, " rows"));
  };
  for (int i = 0; i < count; ++i) {
    FLOE_ASSIGN_OR_RETURN(Splits splits, ReadSplits(ctx.in(first + i)));
    FLOE_RETURN_IF_ERROR(expect(static_cast<int64_t>(splits.size()) - 1));
    nested.push_back(std::move(splits));
  }
  if (count > 0 && values.shape.rank() == 0)
    return absl::InvalidArgumentError("the values are a scalar");
  if (count > 0) FLOE_RETURN_IF_ERROR(expect(values.shape.dim(0)));
  return nested;
}

absl::StatusOr<TensorView> AllocateSplits(const KernelContext& ctx, int k, DType dtype,
                                          int64_t rows, int64_t last) {
  if (dtype == DType::kInt32 && last > std::numeric_limits<int32_t>::max())
    return absl::InvalidArgumentError(absl::StrCat("row splits of int32 cannot hold ", last));
  return ctx.allocator->Allocate(k, dtype, Shape({rows + 1}));
}

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;

// The number of elements from start to limit; an error for steps of 0 and ranges without end.
template <class T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  using C = Compute<T>;
  const C from = static_cast<C>(start), to = static_cast<C>(limit), step = static_cast<C>(delta);
  if (step == C(0)) return absl::InvalidArgumentError("delta is 0");
  if (step > C(0) ? to < from : from < to) return 0;
  double size = 0;
  if constexpr (std::is_integral_v<T>) {
    const auto magnitude = [](uint64_t difference) {
      return static_cast<int64_t>(difference) < 0 ? uint64_t{0} - difference : difference;
    };
    const auto wide = [](T value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); };
    const uint64_t distance = from < to ? wide(to) - wide(from) : wide(from) - wide(to);
    const uint64_t stride = magnitude(wide(step)), whole = distance / stride;
    const uint64_t count = whole + (distance % stride != 0 ? 1 : 0);
    if (count <= static_cast<uint64_t>(kMaxElements)) return static_cast<int64_t>(count);
    size = static_cast<double>(count);
  } else {
    const C quotient = static_cast<C>(T(static_cast<C>(T(to - from)) / step));
    size = std::ceil(std::abs(static_cast<double>(quotient)));
    if (size <= static_cast<double>(kMaxElements)) return static_cast<int64_t>(size);
  }
  return absl::InvalidArgumentError(absl::StrCat("a range of ", size, " elements is too large"));
}

// The element of row i; scalars hold for every row.
template <class T>
T RowValue(const TensorView& view, int64_t i) {
  return view.as<T>()[view.shape.rank() == 0 ? 0 : i];
}

template <class T>
absl::Status RaggedRange(const KernelContext& ctx, DType splits_type) {
  int64_t rows = -1;
  for (int i = 0; i < 3; ++i) {
    const Shape& shape = ctx.in(i).shape;
    if (shape.rank() == 0) continue;
    if (shape.rank() > 1 || (rows >= 0 && rows != shape.dim(0)))
      return absl::InvalidArgumentError(absl::StrCat(
          "starts, limits and deltas ", ctx.in(0).shape.ToString(), ", ",
          ctx.in(1).shape.ToString(), ", ", ctx.in(2).shape.ToString(), " are not of one size"));
    rows = shape.dim(0);
  }
  if (rows < 0) rows = 1;
  std::vector<int64_t> sizes(rows);
  int64_t total = 0;
  for (int64_t i = 0; i < rows; ++i) {
    FLOE_ASSIGN_OR_RETURN(sizes[i], RangeSize(RowValue<T>(ctx.in(0), i), RowValue<T>(ctx.in(1), i),
                                              RowValue<T>(ctx.in(2), i)));
    total += sizes[i];
    if (total > kMaxElements)
      return absl::InvalidArgumentError("the ranges together are too large");
  }
  FLOE_ASSIGN_OR_RETURN(const TensorView splits, AllocateSplits(ctx, 0, splits_type, rows, total));
  FLOE_ASSIGN_OR_RETURN(const TensorView values,
                        ctx.allocator->Allocate(1, kDTypeOf<T>, Shape({total})));
  int64_t at = 0;
  PutInt(splits, 0, 0);
  for (int64_t i = 0; i < rows; ++i) {
    using C = Compute<T>;
    T value = RowValue<T>(ctx.in(0), i);
    const C delta = static_cast<C>(RowValue<T>(ctx.in(2), i));
    for (int64_t k = 0; k < sizes[i]; ++k) {
      values.as<T>()[at++] = value;
      value = T(WrapAdd(static_cast<C>(value), delta));
    }
    PutInt(splits, i + 1, at);
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeRange(const KernelArgs& args) {
  const DType splits = args.node.attrs.Type("Tsplits", DType::kInt64);
  return FromFunction([splits](const KernelContext& ctx) {
    absl::Status status;
    ForDType(ctx.in(0).dtype, TypeList<float, double, BFloat16, int32_t, int64_t>{},
             [&](auto t) { status = RaggedRange<decltype(t)>(ctx, splits); });
    return status;
  });
}
FLOE_REGISTER_KERNEL(RaggedRange, kCpu, MakeRange, DType::kFloat32, DType::kFloat64,
                     DType::kBFloat16, DType::kInt32, DType::kInt64);

// Rows [first, last) of one level.
struct Band {
  int64_t first, last;
};

// The dims of the indices but the last become levels with rows of equal length.
absl::Status GiveUniformSplits(const KernelContext& ctx, DType dtype, const Shape& indices) {
  int64_t rows = 1;
  for (int d = 1; d < indices.rank(); ++d) {
    rows *= indices.dim(d - 1);
    const int64_t length = indices.dim(d);
    FLOE_ASSIGN_OR_RETURN(const TensorView out,
                          AllocateSplits(ctx, d - 1, dtype, rows, rows * length));
    for (int64_t i = 0; i <= rows; ++i) PutInt(out, i, i * length);
  }
  return absl::OkStatus();
}

// Output k (none when -1): the splits of these rows, one band after the other; each band becomes
// that of its rows' elements.
absl::Status GiveGathered(const KernelContext& ctx, int k, DType dtype, const Splits& splits,
                          std::vector<Band>* bands) {
  int64_t rows = 0, last = 0;
  for (const Band& band : *bands) {
    rows += band.last - band.first;
    last += splits[band.last] - splits[band.first];
  }
  if (k >= 0) {
    FLOE_ASSIGN_OR_RETURN(const TensorView out, AllocateSplits(ctx, k, dtype, rows, last));
    int64_t at = 0, end = 0;
    PutInt(out, 0, 0);
    for (const Band& band : *bands) {
      for (int64_t r = band.first; r < band.last; ++r) {
        end += splits[r + 1] - splits[r];
        PutInt(out, ++at, end);
      }
    }
  }
  for (Band& band : *bands) band = {splits[band.first], splits[band.last]};
  return absl::OkStatus();
}

absl::Status GatherValues(const KernelContext& ctx, int k, const TensorView& values,
                          const std::vector<Band>& bands) {
  Shape shape = values.shape;
  int64_t rows = 0;
  for (const Band& band : bands) rows += band.last - band.first;
  shape.set_dim(0, rows);
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(k, values.dtype, shape));
  int64_t at = 0;
  for (const Band& band : bands) {
    Shape part = values.shape;
    part.set_dim(0, band.last - band.first);
    if (part.elements() != 0)
      CopyElements(values.dtype, Rows(values, band.first, part).data, Rows(out, at, part).data,
                   part.elements());
    at += part.dim(0);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRaggedGather(const KernelArgs& args) {
  const int levels = static_cast<int>(args.node.attrs.Int("PARAMS_RAGGED_RANK", 1)),
            out_levels = static_cast<int>(args.node.attrs.Int("OUTPUT_RAGGED_RANK"));
  const DType dtype = args.node.attrs.Type("Tsplits", DType::kInt64);
  return FromFunction([levels, out_levels, dtype](const KernelContext& ctx) -> absl::Status {
    const TensorView &values = ctx.in(levels), &indices = ctx.in(levels + 1);
    const int outer = indices.shape.rank() - 1;  // -1: one row, whose own level is left out
    if (outer + levels != out_levels)
      return absl::InvalidArgumentError(absl::StrCat("indices ", indices.shape.ToString(),
                                                     " do not give ragged rank ", out_levels));
    FLOE_ASSIGN_OR_RETURN(const std::vector<Splits> nested,
                          ReadNestedSplits(ctx, 0, levels, values));
    IntList wanted;
    FLOE_RETURN_IF_ERROR(ReadInts(indices, &wanted));
    const auto rows = static_cast<int64_t>(nested[0].size()) - 1;
    std::vector<Band> bands;
    for (const int64_t index : wanted) {
      if (index < 0 || index >= rows)
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index, " is not in [0, ", rows, ")"));
      bands.push_back({index, index + 1});
    }
    FLOE_RETURN_IF_ERROR(GiveUniformSplits(ctx, dtype, indices.shape));
    for (int level = 0; level < levels; ++level)
      FLOE_RETURN_IF_ERROR(GiveGathered(ctx, outer + level, dtype, nested[level], &bands));
    return GatherValues(ctx, out_levels, values, bands);
  });
}
FLOE_REGISTER_KERNEL(RaggedGather, kCpu, MakeRaggedGather);

// [row of level 0, place in it, place in that, ...] of every row of the values, and the largest
// place of each level + 1 appended to `dense`.
BudgetVector<int64_t> Coordinates(const std::vector<Splits>& nested, std::vector<int64_t>* dense) {
  const auto rows = static_cast<int64_t>(nested[0].size()) - 1;
  BudgetVector<int64_t> places(rows), next;
  for (int64_t r = 0; r < rows; ++r) places[r] = r;
  dense->push_back(rows);
  for (size_t level = 0; level < nested.size(); ++level) {
    const Splits& splits = nested[level];
    const auto width = static_cast<int64_t>(level) + 1;
    int64_t longest = 0;
    next.clear();
    next.reserve(splits.back() * (width + 1));
    for (int64_t r = 0; r + 1 < static_cast<int64_t>(splits.size()); ++r) {
      const int64_t length = splits[r + 1] - splits[r];
      longest = std::max(longest, length);
      for (int64_t k = 0; k < length; ++k) {
        next.insert(next.end(), places.begin() + r * width, places.begin() + (r + 1) * width);
        next.push_back(k);
      }
    }
    dense->push_back(longest);
    places.swap(next);
  }
  return places;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeToSparse(const KernelArgs& args) {
  const int levels = static_cast<int>(args.node.attrs.Int("RAGGED_RANK", 1));
  return FromFunction([levels](const KernelContext& ctx) -> absl::Status {
    const TensorView& values = ctx.in(levels);
    FLOE_ASSIGN_OR_RETURN(const std::vector<Splits> nested,
                          ReadNestedSplits(ctx, 0, levels, values));
    std::vector<int64_t> dense;
    const BudgetVector<int64_t> places = Coordinates(nested, &dense);
    for (int i = 1; i < values.shape.rank(); ++i) dense.push_back(values.shape.dim(i));
    const int64_t count = values.elements(), width = static_cast<int64_t>(dense.size());
    const int64_t inner = values.shape.dim(0) == 0 ? 0 : count / values.shape.dim(0);
    FLOE_ASSIGN_OR_RETURN(const TensorView indices,
                          ctx.allocator->Allocate(0, DType::kInt64, Shape({count, width})));
    for (int64_t i = 0; i < count; ++i) {
      int64_t* to = indices.as<int64_t>() + i * width;
      std::copy_n(places.begin() + i / inner * (levels + 1), levels + 1, to);
      int64_t rest = i % inner;
      for (int64_t k = width - 1; k > levels; --k) {
        to[k] = rest % dense[k];
        rest /= dense[k];
      }
    }
    FLOE_ASSIGN_OR_RETURN(const TensorView out,
                          ctx.allocator->Allocate(1, values.dtype, Shape({count})));
    CopyElements(values.dtype, values.data, out.data, count);
    FLOE_ASSIGN_OR_RETURN(const TensorView shape,
                          ctx.allocator->Allocate(2, DType::kInt64, Shape({width})));
    std::copy(dense.begin(), dense.end(), shape.as<int64_t>());
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(RaggedTensorToSparse, kCpu, MakeToSparse);

}  // namespace
}  // namespace floe::kernels
