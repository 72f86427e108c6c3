// Counting values, and finding places among sorted ones.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/widened.h"

namespace floe::kernels {
namespace {

using Weights = TypeList<int32_t, int64_t, float, double>;

// Values of rows, in the order in which they are given: row r has those from starts[r] on, or
// row_of says it of every value.
struct Counted {
  IntList values;
  int64_t rows = 1;
  bool matrix = false;  // the output has a dim of rows
  std::function<int64_t(int64_t)> row_of;
};

absl::Status CheckSplits(const IntList& splits, int64_t values) {
  if (splits.empty() || splits.front() != 0)
    return absl::InvalidArgumentError("splits must start with 0");
  if (splits.back() != values || !std::is_sorted(splits.begin(), splits.end()))
    return absl::InvalidArgumentError(
        absl::StrCat("Splits must rise to the number of values, ", values));
  return absl::OkStatus();
}

// From splits (input 0) and values (input 1).
absl::Status ReadRagged(const KernelContext& ctx, Counted* counted) {
  IntList splits;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &splits));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &counted->values));
  FLOE_RETURN_IF_ERROR(CheckSplits(splits, static_cast<int64_t>(counted->values.size())));
  counted->rows = static_cast<int64_t>(splits.size()) - 1;
  counted->matrix = true;
  counted->row_of = [splits = std::move(splits)](int64_t i) {
    return std::upper_bound(splits.begin(), splits.end(), i) - splits.begin() - 1;
  };
  return absl::OkStatus();
}

// From indices, values and the dense shape, of one or two dims.
absl::Status ReadSparse(const KernelContext& ctx, Counted* counted) {
  IntList indices, shape;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &indices));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &counted->values));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &shape));
  const auto rank = static_cast<int64_t>(shape.size()),
             count = static_cast<int64_t>(counted->values.size());
  if (rank < 1 || rank > 2 || ctx.in(0).shape != Shape({count, rank}))
    return absl::InvalidArgumentError(absl::StrCat("indices ", ctx.in(0).shape.ToString(), " for ",
                                                   count, " values in ", rank, " dims"));
  FLOE_RETURN_IF_ERROR(CheckedElements(shape, 1).status());
  for (int64_t i = 0; i < count * rank; ++i) {
    if (indices[i] < 0 || indices[i] >= shape[i % rank])
      return absl::InvalidArgumentError(
          absl::StrCat("index ", indices[i], " is not in [0, ", shape[i % rank], ")"));
  }
  counted->matrix = rank == 2;
  counted->rows = rank == 2 ? shape[0] : 1;
  counted->row_of = [indices = std::move(indices), rank](int64_t i) {
    return rank == 2 ? indices[2 * i] : 0;
  };
  return absl::OkStatus();
}

// From a vector or the rows of a matrix.
absl::Status ReadDense(const KernelContext& ctx, Counted* counted) {
  const Shape& shape = ctx.in(0).shape;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &counted->values));
  counted->matrix = shape.rank() == 2;
  if (!counted->matrix) {
    counted->row_of = [](int64_t) { return 0; };
    return absl::OkStatus();
  }
  counted->rows = shape.dim(0);
  counted->row_of = [width = shape.dim(1)](int64_t i) { return i / width; };
  return absl::OkStatus();
}

absl::Status CheckWeights(const Counted& counted, const TensorView& weights) {
  if (weights.elements() == 0 || weights.elements() == static_cast<int64_t>(counted.values.size()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights of shape ", weights.shape.ToString(),
                                                 " for ", counted.values.size(), " values"));
}

absl::Status Negative(int64_t value) {
  return absl::InvalidArgumentError(absl::StrCat("Input must be non-negative, it has ", value));
}

// Into [rows, size] zeros; values of `size` and more are left out.
template <class T>
absl::Status CountInto(const Counted& counted, const TensorView& weights, bool binary, int64_t size,
                       T* out) {
  for (size_t i = 0; i < counted.values.size(); ++i) {
    const int64_t value = counted.values[i], at = static_cast<int64_t>(i);
    if (value < 0) return Negative(value);
    if (value >= size) continue;
    T& count = out[counted.row_of(at) * size + value];
    if (binary) {
      count = T(1);
    } else {
      count = WrapAdd(count, weights.elements() > 0 ? weights.as<T>()[at] : T(1));
    }
  }
  return absl::OkStatus();
}

absl::Status CountAll(const Counted& counted, const TensorView& weights, bool binary, int64_t size,
                      const TensorView& out) {
  absl::Status status;
  ForDType(out.dtype, Weights{}, [&](auto t) {
    using T = decltype(t);
    std::fill_n(out.as<T>(), out.elements(), T(0));
    status = CountInto(counted, weights, binary, size, out.as<T>());
  });
  return status;
}

absl::Status Bincount(const KernelContext& ctx) {
  Counted counted;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &counted.values));
  counted.row_of = [](int64_t) { return 0; };
  FLOE_RETURN_IF_ERROR(CheckWeights(counted, ctx.in(2)));
  return CountAll(counted, ctx.in(2), false, ctx.out(0).elements(), ctx.out(0));
}
FLOE_REGISTER_KERNEL(Bincount, kCpu, MakeFunction<&Bincount>);

absl::StatusOr<std::unique_ptr<Kernel>> MakeDenseBincount(const KernelArgs& args) {
  return FromFunction(
      [binary = args.node.attrs.Bool("binary_output")](const KernelContext& ctx) -> absl::Status {
        Counted counted;
        FLOE_RETURN_IF_ERROR(ReadDense(ctx, &counted));
        FLOE_RETURN_IF_ERROR(CheckWeights(counted, ctx.in(2)));
        const Shape& shape = ctx.out(0).shape;
        return CountAll(counted, ctx.in(2), binary, shape.dim(shape.rank() - 1), ctx.out(0));
      });
}
FLOE_REGISTER_KERNEL(DenseBincount, kCpu, MakeDenseBincount);

template <absl::Status (*kRead)(const KernelContext&, Counted*)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBincount(const KernelArgs& args) {
  return FromFunction([binary = args.node.attrs.Bool("binary_output")](
                          const KernelContext& ctx) -> absl::Status {
    const auto inputs = static_cast<int>(ctx.inputs.size());
    const TensorView& weights = ctx.in(inputs - 1);
    Counted counted;
    FLOE_RETURN_IF_ERROR(kRead(ctx, &counted));
    FLOE_RETURN_IF_ERROR(CheckWeights(counted, weights));
    FLOE_ASSIGN_OR_RETURN(const int64_t size, ReadInt(ctx.in(inputs - 2)));
    if (size < 0)
      return absl::InvalidArgumentError(absl::StrCat("size ", size, " must be non-negative"));
    const Shape shape = counted.matrix ? Shape({counted.rows, size}) : Shape({size});
    FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, weights.dtype, shape));
    return CountAll(counted, weights, binary, size, out);
  });
}
FLOE_REGISTER_KERNEL(RaggedBincount, kCpu, MakeBincount<&ReadRagged>);
FLOE_REGISTER_KERNEL(SparseBincount, kCpu, MakeBincount<&ReadSparse>);

// ---- counts as sparse tensors ----

struct CountLimits {
  int64_t least = -1, most = -1;
  bool binary = false;
};

template <class T>
absl::Status CountSparse(const KernelContext& ctx, const Counted& counted,
                         const TensorView& weights, const CountLimits& limits) {
  FLOE_RETURN_IF_ERROR(CheckedElements(absl::MakeConstSpan(&counted.rows, 1), 64).status());
  std::map<std::pair<int64_t, int64_t>, T> counts;  // by row and value
  int64_t largest = 0;
  for (size_t i = 0; i < counted.values.size(); ++i) {
    if (i % 4096 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
    const int64_t value = counted.values[i], at = static_cast<int64_t>(i);
    if (value < 0) return Negative(value);
    if (limits.most >= 0 && value >= limits.most) continue;
    T& count = counts[{counted.row_of(at), value}];
    largest = std::max(largest, value);
    if (limits.binary) {
      count = T(1);
    } else {
      count = WrapAdd(count, weights.elements() > 0 ? weights.as<T>()[at] : T(1));
    }
  }
  const int64_t size = limits.most > 0 ? limits.most : std::max(largest + 1, limits.least);
  std::vector<int64_t> indices, shape = {size};
  std::vector<T> values;
  indices.reserve(counts.size() * (counted.matrix ? 2 : 1));
  values.reserve(counts.size());
  for (const auto& [place, count] : counts) {
    if (counted.matrix) indices.push_back(place.first);
    indices.push_back(place.second);
    values.push_back(count);
  }
  if (counted.matrix) shape.insert(shape.begin(), counted.rows);
  const auto found = static_cast<int64_t>(values.size());
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({found, counted.matrix ? 2 : 1})));
  FLOE_RETURN_IF_ERROR(Give(ctx, 1, values));
  return Give(ctx, 2, shape);
}

template <absl::Status (*kRead)(const KernelContext&, Counted*)>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCount(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  const CountLimits limits{a.Int("minlength", -1), a.Int("maxlength", -1), a.Bool("binary_output")};
  return FromFunction([limits](const KernelContext& ctx) -> absl::Status {
    const TensorView& weights = ctx.inputs.back();
    Counted counted;
    FLOE_RETURN_IF_ERROR(kRead(ctx, &counted));
    FLOE_RETURN_IF_ERROR(CheckWeights(counted, weights));
    absl::Status status;
    ForDType(weights.dtype, Weights{},
             [&](auto t) { status = CountSparse<decltype(t)>(ctx, counted, weights, limits); });
    return status;
  });
}
FLOE_REGISTER_KERNEL(DenseCountSparseOutput, kCpu, MakeCount<&ReadDense>);
FLOE_REGISTER_KERNEL(SparseCountSparseOutput, kCpu, MakeCount<&ReadSparse>);
FLOE_REGISTER_KERNEL(RaggedCountSparseOutput, kCpu, MakeCount<&ReadRagged>);

// ---- places among sorted values ----

template <class T, bool kUpper>
absl::Status Bound(const KernelContext& ctx) {
  const Shape &sorted = ctx.in(0).shape, &values = ctx.in(1).shape;
  if (sorted.dim(0) != values.dim(0))
    return absl::InvalidArgumentError(absl::StrCat(
        "sorted_inputs ", sorted.ToString(), " and values ", values.ToString(), " differ in rows"));
  for (int64_t i = 0; i < values.elements(); ++i) {
    const T* const from = ctx.in(0).as<T>() + i / values.dim(1) * sorted.dim(1);
    const T* const to = from + sorted.dim(1);
    const T value = ctx.in(1).as<T>()[i];
    const int64_t at =
        (kUpper ? std::upper_bound(from, to, value) : std::lower_bound(from, to, value)) - from;
    if (ctx.out(0).dtype == DType::kInt32) {
      ctx.out(0).as<int32_t>()[i] = static_cast<int32_t>(at);
    } else {
      ctx.out(0).as<int64_t>()[i] = at;
    }
  }
  return absl::OkStatus();
}
template <bool kUpper>
bool RegisterBound(const char* name) {
  KernelRegistrar(name, DeviceKind::kCpu, {DType::kFloat64}, &MakeFunction<&Bound<double, kUpper>>);
  KernelRegistrar(name, DeviceKind::kCpu, {DType::kInt64}, &MakeFunction<&Bound<int64_t, kUpper>>);
  KernelRegistrar(name, DeviceKind::kCpu, {DType::kUInt64},
                  &MakeFunction<&Bound<uint64_t, kUpper>>);
  RegisterWidenedReals<&MakeFunction<&Bound<int64_t, kUpper>>,
                       &MakeFunction<&Bound<double, kUpper>>, Widening::kInputs>(name);
  return true;
}
const bool kBounds[] = {RegisterBound<false>("LowerBound"), RegisterBound<true>("UpperBound")};

template <class T>
absl::Status Histogram(const KernelContext& ctx) {
  const TensorView &values = ctx.in(0), &range = ctx.in(1), &out = ctx.out(0);
  if (range.elements() != 2)
    return absl::InvalidArgumentError("value_range should be a vector of 2 elements");
  const auto low = static_cast<double>(range.as<T>()[0]),
             high = static_cast<double>(range.as<T>()[1]);
  if (!(low < high))
    return absl::InvalidArgumentError(
        absl::StrCat("value_range should satisfy value_range[0] < value_range[1], but got '[", low,
                     ", ", high, "]'"));
  const int64_t bins = out.elements();
  const double step = (high - low) / static_cast<double>(bins);
  std::vector<int64_t> counts(static_cast<size_t>(bins));
  for (int64_t i = 0; i < values.elements(); ++i) {
    const double bin = std::floor((static_cast<double>(values.as<T>()[i]) - low) / step);
    const double last = static_cast<double>(bins - 1);
    ++counts[bin > 0 ? static_cast<size_t>(std::min(bin, last)) : 0];  // a NaN is in the first
  }
  for (int64_t i = 0; i < bins; ++i) {
    if (out.dtype == DType::kInt32) {
      out.as<int32_t>()[i] = static_cast<int32_t>(counts[i]);
    } else {
      out.as<int64_t>()[i] = counts[i];
    }
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(HistogramFixedWidth, kCpu, MakeFunction<&Histogram<T>>,
                      TypeList<int32_t, int64_t, float, double>);

template <class T>
absl::Status Unravel(const KernelContext& ctx) {
  IntList indices, dims;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &indices));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &dims));
  if (std::find(dims.begin(), dims.end(), 0) != dims.end())
    return absl::InvalidArgumentError("Input dims cannot contain a dim of zero");
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(dims, 1, INT64_MAX));
  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = indices[i];
    if (rest < 0 || rest >= elements)
      return absl::InvalidArgumentError(
          absl::StrCat("index ", rest, " is out of bound as with dims of ", elements, " elements"));
    for (auto k = static_cast<int64_t>(dims.size()) - 1; k >= 0; --k) {
      ctx.out(0).as<T>()[k * count + i] = static_cast<T>(rest % dims[k]);
      rest /= dims[k];
    }
  }
  return absl::OkStatus();
}
FLOE_REGISTER_KERNELS(UnravelIndex, kCpu, MakeFunction<&Unravel<T>>, TypeList<int32_t, int64_t>);

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeNth(const KernelArgs& args) {
  return FromFunction(
      [reverse = args.node.attrs.Bool("reverse")](const KernelContext& ctx) -> absl::Status {
        const TensorView& in = ctx.in(0);
        const int64_t width = in.shape.dim(in.shape.rank() - 1);
        FLOE_ASSIGN_OR_RETURN(const int64_t n, ReadInt(ctx.in(1)));
        if (n < 0 || n >= width)
          return absl::InvalidArgumentError(
              absl::StrCat("n is ", n, ", the last dimension of the input ", width));
        BudgetVector<T> row(static_cast<size_t>(width));
        for (int64_t i = 0; i < ctx.out(0).elements(); ++i) {
          if (i % 64 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
          std::copy_n(in.as<T>() + i * width, width, row.begin());
          const int64_t place = reverse ? width - 1 - n : n;
          std::nth_element(row.begin(), row.begin() + place, row.end());
          ctx.out(0).as<T>()[i] = row[static_cast<size_t>(place)];
        }
        return absl::OkStatus();
      });
}
FLOE_REGISTER_KERNELS(NthElement, kCpu, MakeNth<T>, TypeList<double, int64_t, uint64_t>);
const bool kNth =
    (RegisterWidenedReals<&MakeNth<int64_t>, &MakeNth<double>, Widening::kWrap>("NthElement"),
     true);

}  // namespace
}  // namespace floe::kernels
