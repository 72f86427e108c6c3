// Sparse tensors (indices, values, dense shape) sorted, joined, cut, added up and mixed with dense
// ones.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

Types SparseTypes(DType dtype, Dim count, Dim rank) {
  return {{DType::kInt64, {count, rank}}, {dtype, {count}}, {DType::kInt64, {rank}}};
}

absl::StatusOr<Types> InferReorder(const InferContext& c) {
  return Types{{DType::kInt64, {ops::DimOf(c, 0, 0), ops::DimOf(c, 2, 0)}},
               {c.dtype(1), {ops::DimOf(c, 1, 0)}}};
}

// N indices, N values, N shapes.
absl::StatusOr<Types> InferSparseConcat(const InferContext& c) {
  const int n = c.num_inputs() / 3;
  if (n < 1 || c.num_inputs() != 3 * n)
    return Bad(absl::StrCat(c.num_inputs(), " inputs are no sparse tensors"));
  for (int i = 0; i < n; ++i) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, DType::kInt64));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 2));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, n + i, c.dtype(n)));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, n + i, 1));
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2 * n + i, DType::kInt64));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2 * n + i, 1));
  }
  return SparseTypes(c.dtype(n), Dim::Unknown(), ops::DimOf(c, 2 * n, 0));
}

// Two sparse tensors[, the least sum that is kept].
absl::StatusOr<Types> InferTwoSparse(const InferContext& c) {
  Types types = SparseTypes(c.dtype(1), Dim::Unknown(), ops::DimOf(c, 2, 0));
  if (c.node.op->name != "SparseAdd") types.pop_back();
  return types;
}

// A sparse tensor, start, size.
absl::StatusOr<Types> InferSlice(const InferContext& c) {
  return SparseTypes(c.dtype(1), Dim::Unknown(), ops::DimOf(c, 2, 0));
}

// The dim to split, a sparse tensor -> as many sparse tensors as num_split says.
absl::StatusOr<Types> InferSplit(const InferContext& c) {
  const int64_t parts = c.attrs().Int("num_split");
  constexpr int64_t kMost = 1 << 20;
  if (parts < 1 || parts > kMost)
    return Bad(absl::StrCat("num_split is ", parts, ", expected 1 to 2^20"));
  const Types one = SparseTypes(c.dtype(2), Dim::Unknown(), ops::DimOf(c, 3, 0));
  Types types;
  for (const TensorType& type : one) types.insert(types.end(), static_cast<size_t>(parts), type);
  return types;
}

// A sparse tensor, axes -> dense.
absl::StatusOr<Types> InferSparseReduce(const InferContext& c) {
  const Dim rank = ops::DimOf(c, 2, 0);
  std::vector<int64_t> axes;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(3, &axes));
  if (!known || !rank.concrete()) return ops::One(c.dtype(1), SymShape::UnknownRank());
  std::vector<bool> gone(static_cast<size_t>(std::min<int64_t>(rank.size(), 254)));
  for (const int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + rank.size() : axis;
    if (at < 0 || at >= static_cast<int64_t>(gone.size()))
      return Bad(absl::StrCat("Invalid reduction dimension ", axis, ", for input with ",
                              rank.size(), " dimension(s)"));
    gone[static_cast<size_t>(at)] = true;
  }
  const bool keep = c.attrs().Bool("keep_dims");
  SymShape out;
  for (const bool reduced : gone) {
    if (!reduced) out.push_back(Dim::Unknown());
    if (reduced && keep) out.push_back(1);
  }
  return ops::One(c.dtype(1), std::move(out));
}

// A sparse tensor[, a dense one] -> the values.
absl::StatusOr<Types> InferValues(const InferContext& c) {
  return ops::One(c.dtype(1), {ops::DimOf(c, 1, 0)});
}
absl::StatusOr<Types> InferDenseAdd(const InferContext& c) {
  return ops::One(c.dtype(1), c.shape(3));
}

OpDef SparseConcat() {
  OpDef def = ops::Allocating("SparseConcat", {"output_indices", "output_values", "output_shape"},
                              InferSparseConcat);
  def.min_inputs = 3;
  def.max_inputs = -1;
  return def;
}
OpDef OfPair(const char* name) {
  return ops::Allocating(name, {"output_indices", "output_values"}, InferTwoSparse);
}

const OpRegistrar kSparse[] = {
    OpRegistrar({.name = "SparseReorder",
                 .output_names = {"output_indices", "output_values"},
                 .infer = InferReorder,
                 .rows = ops::NoRows,
                 .input_types = "int64[_,_] T[_] int64[_]"}),
    OpRegistrar(SparseConcat()),
    OpRegistrar(
        ops::Allocating("SparseAdd", {"sum_indices", "sum_values", "sum_shape"}, InferTwoSparse),
        "int64[_,_] T[_] int64[_] int64[_,_] T[_] int64[_] U[]"),
    OpRegistrar(OfPair("SparseSparseMaximum"), "int64[_,_] T[_] int64[_] int64[_,_] T[_] int64[_]"),
    OpRegistrar(OfPair("SparseSparseMinimum"), "int64[_,_] T[_] int64[_] int64[_,_] T[_] int64[_]"),
    OpRegistrar(ops::Allocating("SparseSlice", {"output_indices", "output_values", "output_shape"},
                                InferSlice),
                "int64[_,_] T[_] int64[_] int64[_] int64[_]"),
    OpRegistrar(ops::Allocating("SparseSplit",
                                {"output_indices:num_split", "output_values:num_split",
                                 "output_shape:num_split"},
                                InferSplit),
                "int64[] int64[_,_] T[_] int64[_]"),
    OpRegistrar(ops::Allocating("SparseReduceSum", {"output"}, InferSparseReduce),
                "int64[_,_] T[_] int64[_] int32"),
    OpRegistrar(ops::Allocating("SparseReduceMax", {"output"}, InferSparseReduce),
                "int64[_,_] T[_] int64[_] int32"),
    OpRegistrar(ops::Simple("SparseTensorDenseAdd", InferDenseAdd, ops::NoRows),
                "i[_,_] T[_] i[_] T"),
    OpRegistrar(ops::Simple("SparseSoftmax", InferValues, ops::NoRows), "int64[_,_] T[_] int64[_]"),
};
const ops::Family kWithDense({"SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"},
                             {.infer = InferValues,
                              .rows = ops::NoRows,
                              .input_types = "int64[_,_] T[_] int64[_] T"});

}  // namespace
}  // namespace floe
