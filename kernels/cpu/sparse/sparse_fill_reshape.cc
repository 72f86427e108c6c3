// Ops that take or give sparse tensors (indices, values, dense shape): SparseReshape,
// SparseFillEmptyRows, RaggedFillEmptyRows and CTCGreedyDecoder.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dynamic_output.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

constexpr int64_t kMaxDenseElements = int64_t{1} << 40;

// As many dims as a dense tensor may have: indices are allocated by it.
absl::Status CheckSparseRank(size_t dims) {
  constexpr size_t kMost = 254;
  return dims <= kMost
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat("a sparse tensor of ", dims, " dimensions"));
}

absl::Status SparseReshape(const KernelContext& ctx) {
  IntList indices, from, to;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &indices));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &from));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &to));
  const Shape& shape = ctx.in(0).shape;
  FLOE_RETURN_IF_ERROR(CheckSparseRank(to.size()));
  if (shape.rank() != 2 || shape.dim(1) != static_cast<int64_t>(from.size()))
    return absl::InvalidArgumentError(
        absl::StrCat("indices ", shape.ToString(), " into ", from.size(), " dims"));
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(from, 1, kMaxDenseElements));
  int64_t known = 1, open = -1;
  for (size_t k = 0; k < to.size(); ++k) {
    if (to[k] == -1 && open < 0) {
      open = static_cast<int64_t>(k);
      to[k] = 1;
    }
  }
  FLOE_ASSIGN_OR_RETURN(known, CheckedElements(to, 1, kMaxDenseElements));
  if (open >= 0) to[open] = known == 0 ? 0 : elements / known;
  if (open >= 0) known *= to[open];
  if (known != elements)
    return absl::InvalidArgumentError(
        absl::StrCat("a shape of ", elements, " elements cannot become one of ", known));
  const int64_t rows = shape.dim(0), width = shape.dim(1), rank = static_cast<int64_t>(to.size());
  BudgetVector<int64_t> out(rows * rank);
  for (int64_t i = 0; width + rank > 0 && i < rows; ++i) {
    int64_t at = 0;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t index = indices[i * width + k];
      if (index < 0 || index >= from[k])
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index, " is not in [0, ", from[k], ")"));
      at = at * from[k] + index;
    }
    for (int64_t k = rank - 1; k >= 0; --k) {
      out[i * rank + k] = at % to[k];
      at /= to[k];
    }
  }
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, out, Shape({rows, rank})));
  return Give(ctx, 1, std::vector<int64_t>(to.begin(), to.end()));
}

// Rows without values get the default at column 0; the values come out ordered by row. A ragged
// tensor has the row alone of each value, and the number of rows for a shape.
absl::Status FillEmptyRows(const KernelContext& ctx) {
  IntList indices, shape;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &indices));
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(2), &shape));
  const TensorView& values = ctx.in(1);
  const auto width = static_cast<int64_t>(shape.size());
  FLOE_RETURN_IF_ERROR(CheckSparseRank(shape.size()));
  if (width == 0 || values.elements() * width != static_cast<int64_t>(indices.size()) ||
      ctx.in(3).elements() != 1)
    return absl::InvalidArgumentError(absl::StrCat(indices.size(), " indices for ",
                                                   values.elements(), " values of rank ", width));
  FLOE_RETURN_IF_ERROR(CheckedElements(absl::MakeConstSpan(shape.data(), 1), 64).status());
  const int64_t rows = shape[0];
  BudgetVector<int64_t> next(rows + 1), went(values.elements()), out;
  for (int64_t i = 0; i < values.elements(); ++i) {
    const int64_t row = indices[i * width];
    if (row < 0 || row >= rows)
      return absl::InvalidArgumentError(absl::StrCat("row ", row, " is not in [0, ", rows, ")"));
    ++next[row + 1];
  }
  FLOE_ASSIGN_OR_RETURN(const TensorView empty,
                        ctx.allocator->Allocate(2, DType::kBool, Shape({rows})));
  for (int64_t r = 0; r < rows; ++r) {
    empty.as<bool>()[r] = next[r + 1] == 0;
    next[r + 1] = next[r] + std::max<int64_t>(next[r + 1], 1);
  }
  out.assign(next[rows] * width, 0);
  FLOE_ASSIGN_OR_RETURN(const TensorView to,
                        ctx.allocator->Allocate(1, values.dtype, Shape({next[rows]})));
  const auto step = static_cast<int64_t>(ElementBytes(values.dtype));
  const auto place = [&](const TensorView& view, int64_t from, int64_t at) {
    CopyElements(view.dtype, view.as<std::byte>() + from * step, to.as<std::byte>() + at * step, 1);
  };
  for (int64_t r = 0; r < rows; ++r) {
    if (!empty.as<bool>()[r]) continue;
    out[next[r] * width] = r;
    place(ctx.in(3), 0, next[r]);
  }
  for (int64_t i = 0; i < values.elements(); ++i) {
    went[i] = next[indices[i * width]]++;
    std::copy_n(indices.data() + i * width, width, out.data() + went[i] * width);
    place(values, i, went[i]);
  }
  Shape places({static_cast<int64_t>(out.size()) / width});
  if (ctx.in(0).shape.rank() == 2) places.push_back(width);
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, out, places));
  return Give(ctx, 3, went);
}

// The best class of every step, without blanks and, with `merge`, without repetitions.
template <class T>
absl::Status Ctc(const KernelContext& ctx, bool merge, int64_t blank) {
  const Shape& shape = ctx.in(0).shape;
  IntList lengths;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &lengths));
  const int64_t steps = shape.dim(0), batch = shape.dim(1), classes = shape.dim(2);
  if (blank < 0) blank += classes;
  if (static_cast<int64_t>(lengths.size()) != batch || classes == 0 || blank < 0 ||
      blank >= classes)
    return absl::InvalidArgumentError(absl::StrCat("logits ", shape.ToString(), " with ",
                                                   lengths.size(), " lengths, blank ", blank));
  std::vector<int64_t> indices, values;
  BudgetVector<T> score(batch);
  int64_t longest = 0;
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] > steps)  // negative is none, as in TensorFlow
      return absl::InvalidArgumentError(
          absl::StrCat("sequence_length ", lengths[b], " is more than ", steps));
    int64_t last = -1, count = 0;
    for (int64_t t = 0; t < lengths[b]; ++t) {
      const T* x = ctx.in(0).as<T>() + (t * batch + b) * classes;
      const T* best = std::max_element(x, x + classes);
      score[b] -= *best;
      const int64_t label = best - x;
      if (label != blank && !(merge && label == last)) {
        indices.insert(indices.end(), {b, count++});
        values.push_back(label);
      }
      last = label;
    }
    longest = std::max(longest, count);
  }
  FLOE_RETURN_IF_ERROR(Give(ctx, 0, indices, Shape({static_cast<int64_t>(values.size()), 2})));
  FLOE_RETURN_IF_ERROR(Give(ctx, 1, values));
  FLOE_RETURN_IF_ERROR(Give(ctx, 2, std::vector<int64_t>{batch, longest}));
  return Give(ctx, 3, score, Shape({batch, 1}));
}
template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeCtc(const KernelArgs& args) {
  const bool merge = args.node.attrs.Bool("merge_repeated");
  const int64_t blank = args.node.attrs.Int("blank_index", -1);
  return FromFunction(
      [merge, blank](const KernelContext& ctx) { return Ctc<T>(ctx, merge, blank); });
}

FLOE_REGISTER_KERNEL(SparseReshape, kCpu, MakeFunction<&SparseReshape>);
FLOE_REGISTER_KERNEL(SparseFillEmptyRows, kCpu, MakeFunction<&FillEmptyRows>);
FLOE_REGISTER_KERNEL(RaggedFillEmptyRows, kCpu, MakeFunction<&FillEmptyRows>);
FLOE_REGISTER_KERNEL(CTCGreedyDecoder, kCpu, MakeCtc<float>, DType::kFloat32);
FLOE_REGISTER_KERNEL(CTCGreedyDecoder, kCpu, MakeCtc<double>, DType::kFloat64);

}  // namespace
}  // namespace floe::kernels
