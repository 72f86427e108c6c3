// RaggedTensorToTensor: rows padded with a default value, or cut, to one size.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/element_type.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/ragged/ragged.h"

namespace floe::kernels {
namespace {

absl::Status Refuse(const std::string& kind, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("row partition ", kind, ": ", why));
}

// How one level's rows divide the next level's, as row splits. `rows`: of this level, -1 when only
// the partition says it; `next`: of the next level, -1 likewise.
absl::StatusOr<Splits> ReadPartition(const std::string& kind, const TensorView& view, int64_t rows,
                                     int64_t next) {
  if (kind == "ROW_SPLITS") {
    FLOE_ASSIGN_OR_RETURN(Splits splits, ReadSplits(view));
    return splits;
  }
  IntList read;
  FLOE_RETURN_IF_ERROR(ReadInts(view, &read));
  Splits splits = {0};
  if (kind == "VALUE_ROWIDS") {
    if (rows < 0) return Refuse(kind, "the first partition must say the number of rows");
    for (size_t i = 0; i < read.size(); ++i) {
      if (read[i] < (i == 0 ? 0 : read[i - 1]) || read[i] >= rows)
        return Refuse(kind, absl::StrCat("row ", read[i], " at position ", i,
                                         " is out of order or not in [0, ", rows, ")"));
    }
    splits.assign(rows + 1, 0);
    for (const int64_t row : read) ++splits[row + 1];
    for (int64_t r = 0; r < rows; ++r) splits[r + 1] += splits[r];
  } else if (kind == "ROW_LENGTHS") {
    for (const int64_t length : read) {
      int64_t end = 0;
      if (length < 0 || __builtin_add_overflow(splits.back(), length, &end))
        return Refuse(kind, absl::StrCat("length ", length));
      splits.push_back(end);
    }
  } else if (kind == "ROW_LIMITS") {
    splits.insert(splits.end(), read.begin(), read.end());
  } else if (kind == "ROW_STARTS") {
    if (next < 0) return Refuse(kind, "only the last partition may be one");
    splits.assign(read.begin(), read.end());
    splits.push_back(next);
  } else {
    return Refuse(kind, "an unknown type");
  }
  if (splits[0] != 0 || !std::is_sorted(splits.begin(), splits.end()))
    return Refuse(kind, "rows begin at 0 and follow each other");
  return splits;
}

// The partitions as splits, outermost first.
absl::StatusOr<std::vector<Splits>> ReadPartitions(const KernelContext& ctx,
                                                   const std::vector<std::string>& kinds) {
  constexpr int kFirst = 3;
  int64_t rows = -1;
  size_t level = 0;
  if (kinds[0] == "FIRST_DIM_SIZE") {
    FLOE_ASSIGN_OR_RETURN(rows, ReadInt(ctx.in(kFirst)));
    constexpr int64_t kMaxRows = int64_t{1} << 26;  // rows take memory before anything is in them
    if (rows < 0 || rows > kMaxRows) return Refuse(kinds[0], absl::StrCat(rows, " rows"));
    level = 1;
  }
  std::vector<Splits> nested;
  const int64_t values = ctx.in(1).shape.rank() == 0 ? 0 : ctx.in(1).shape.dim(0);
  for (; level < kinds.size(); ++level) {
    const bool last = level + 1 == kinds.size();
    FLOE_ASSIGN_OR_RETURN(
        Splits splits, ReadPartition(kinds[level], ctx.in(kFirst + static_cast<int>(level)), rows,
                                     last ? values : -1));
    const auto found = static_cast<int64_t>(splits.size()) - 1;
    if (rows >= 0 && rows != found)
      return Refuse(kinds[level], absl::StrCat(found, " rows, expected ", rows));
    rows = splits.back();
    nested.push_back(std::move(splits));
  }
  if (rows != values)
    return absl::InvalidArgumentError(
        absl::StrCat("the partitions describe ", rows, " values, there are ", values));
  return nested;
}

// Sizes of the output: what was asked for, otherwise the longest row.
absl::StatusOr<Shape> OutputShape(const TensorView& asked, const std::vector<Splits>& nested,
                                  int64_t rows, const Shape& values) {
  Shape shape({rows});
  for (const Splits& splits : nested) {
    int64_t longest = 0;
    for (size_t r = 0; r + 1 < splits.size(); ++r)
      longest = std::max(longest, splits[r + 1] - splits[r]);
    shape.push_back(longest);
  }
  const int cut = shape.rank();  // dims behind are the values' own
  for (int i = 1; i < values.rank(); ++i) shape.push_back(values.dim(i));
  IntList dims;
  FLOE_RETURN_IF_ERROR(ReadInts(asked, &dims));
  if (asked.shape.rank() == 0) {
    if (dims[0] == -1) return shape;
    return absl::InvalidArgumentError(
        absl::StrCat("the shape is the scalar ", dims[0], ", expected -1 or a vector"));
  }
  if (static_cast<int>(dims.size()) != shape.rank())
    return absl::InvalidArgumentError(
        absl::StrCat("the shape has ", dims.size(), " dims, the ragged tensor ", shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) {
    if (dims[i] < -1 || (i >= cut && dims[i] >= 0 && dims[i] != shape.dim(i)))
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of the shape is ", dims[i],
                                                     ", the values have ", shape.dim(i)));
    if (dims[i] >= 0) shape.set_dim(i, dims[i]);
  }
  return shape;
}

// Where each row of the values goes, in rows of the output; -1 for those cut off.
BudgetVector<int64_t> Places(const std::vector<Splits>& nested, int64_t rows, const Shape& out) {
  BudgetVector<int64_t> places(rows), next;
  for (int64_t r = 0; r < rows; ++r) places[r] = r < out.dim(0) ? r : -1;
  for (size_t level = 0; level < nested.size(); ++level) {
    const Splits& splits = nested[level];
    const int64_t width = out.dim(static_cast<int>(level) + 1);
    next.assign(splits.back(), -1);
    for (size_t r = 0; r + 1 < splits.size(); ++r) {
      const int64_t length = std::min(splits[r + 1] - splits[r], width);
      for (int64_t k = 0; places[r] >= 0 && k < length; ++k)
        next[splits[r] + k] = places[r] * width + k;
    }
    places.swap(next);
  }
  return places;
}

// The default value, broadcast to the dims of one element, in every element of the output.
absl::Status FillDefault(const KernelContext& ctx, const TensorView& out, int first_inner) {
  const TensorView& value = ctx.in(2);
  Shape element;
  for (int i = first_inner; i < out.shape.rank(); ++i) element.push_back(out.shape.dim(i));
  if (value.elements() == 1 && value.shape.rank() <= element.rank()) {
    FillElements(out.dtype, value.data, out.data, out.elements());
    return absl::OkStatus();
  }
  const IntList from = DenseStrides(value.shape), to = DenseStrides(element);
  const int skipped = element.rank() - value.shape.rank();
  bool fits = skipped >= 0;
  Grid grid;
  const int64_t size = element.elements();
  grid.Add(size == 0 ? 0 : out.elements() / size, 0, size);
  for (int i = 0; fits && i < element.rank(); ++i) {
    const int64_t have = i < skipped ? 1 : value.shape.dim(i - skipped);
    fits = have == 1 || have == element.dim(i);
    grid.Add(element.dim(i), have == 1 ? 0 : from[i - skipped], to[i]);
  }
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat("the default value ", value.shape.ToString(),
                                                   " does not broadcast to ", element.ToString()));
  CopyGrid(std::move(grid), out.dtype, value.data, out.data, ctx.pool);
  return absl::OkStatus();
}

absl::Status ToTensor(const KernelContext& ctx, const std::vector<std::string>& kinds) {
  const TensorView& values = ctx.in(1);
  if (values.shape.rank() == 0) return absl::InvalidArgumentError("the values are a scalar");
  FLOE_ASSIGN_OR_RETURN(const std::vector<Splits> nested, ReadPartitions(ctx, kinds));
  const int64_t rows =
      nested.empty() ? values.shape.dim(0) : static_cast<int64_t>(nested[0].size()) - 1;
  FLOE_ASSIGN_OR_RETURN(const Shape shape, OutputShape(ctx.in(0), nested, rows, values.shape));
  FLOE_ASSIGN_OR_RETURN(const TensorView out, ctx.allocator->Allocate(0, values.dtype, shape));
  const int first_inner = static_cast<int>(nested.size()) + 1;
  FLOE_RETURN_IF_ERROR(FillDefault(ctx, out, first_inner));
  if (out.elements() == 0 || values.elements() == 0) return absl::OkStatus();
  const int64_t inner = values.elements() / values.shape.dim(0);
  const auto step = inner * static_cast<int64_t>(ElementBytes(values.dtype));
  if (nested.size() == 1) {  // what is kept of a row stays in one piece
    const int64_t width = shape.dim(1);
    for (int64_t r = 0; r < std::min(rows, shape.dim(0)); ++r) {
      const int64_t begin = nested[0][r], kept = std::min(nested[0][r + 1] - begin, width);
      CopyElements(values.dtype, values.as<std::byte>() + begin * step,
                   out.as<std::byte>() + r * width * step, kept * inner);
    }
    return absl::OkStatus();
  }
  const BudgetVector<int64_t> places = Places(nested, rows, shape);
  const auto count = static_cast<int64_t>(places.size());
  for (int64_t i = 0; i < count; ++i) {
    if (places[i] >= 0)
      CopyElements(values.dtype, values.as<std::byte>() + i * step,
                   out.as<std::byte>() + places[i] * step, inner);
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeToTensor(const KernelArgs& args) {
  const auto kinds = args.node.attrs.Get<std::vector<std::string>>("row_partition_types", {});
  return FromFunction([kinds](const KernelContext& ctx) { return ToTensor(ctx, kinds); });
}
FLOE_REGISTER_KERNEL(RaggedTensorToTensor, kCpu, MakeToTensor);

}  // namespace
}  // namespace floe::kernels
