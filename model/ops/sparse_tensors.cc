// Sparse tensors (indices, values, dense shape) sorted, joined, cut, added up and mixed with dense
// ones.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

// Inputs `first` to `first` + 2 are a sparse tensor.
absl::Status CheckSparse(const InferContext& c, int first) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, first, DType::kInt64));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, first, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, first + 1, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, first + 2, DType::kInt64));
  return ops::ExpectRank(c, first + 2, 1);
}

Types SparseTypes(DType dtype, Dim count, Dim rank) {
  return {{DType::kInt64, {count, rank}}, {dtype, {count}}, {DType::kInt64, {rank}}};
}

absl::StatusOr<Types> InferReorder(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 0));
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
absl::StatusOr<Types> InferPair(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 0));
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 3));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 4, c.dtype(1)));
  if (c.num_inputs() > 6) FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 6, 0));
  Types types = SparseTypes(c.dtype(1), Dim::Unknown(), ops::DimOf(c, 2, 0));
  if (c.node.op->name != "SparseAdd") types.pop_back();
  return types;
}

// A sparse tensor, start, size.
absl::StatusOr<Types> InferSlice(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 0));
  for (int i = 3; i < 5; ++i) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, DType::kInt64));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 1));
  }
  return SparseTypes(c.dtype(1), Dim::Unknown(), ops::DimOf(c, 2, 0));
}

// The dim to split, a sparse tensor -> as many sparse tensors as num_split says.
absl::StatusOr<Types> InferSplit(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 0));
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 1));
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
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 0));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 3, DType::kInt32));
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

// A sparse tensor, a dense one -> the values.
absl::StatusOr<Types> InferWithDense(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 0));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 3, c.dtype(1)));
  return ops::One(c.dtype(1), {ops::DimOf(c, 1, 0)});
}
absl::StatusOr<Types> InferDenseAdd(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 3, c.dtype(1)));
  return ops::One(c.dtype(1), c.shape(3));
}
absl::StatusOr<Types> InferSparseSoftmax(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckSparse(c, 0));
  return ops::One(c.dtype(1), {ops::DimOf(c, 1, 0)});
}

OpDef Fixed(const std::string& name, int inputs, std::vector<std::string> outputs,
            absl::StatusOr<Types> (*infer)(const InferContext&)) {
  OpDef def = ops::MixingRows(name, inputs, std::move(outputs), infer);
  def.rows = ops::NoRows;
  return def;
}
OpDef SparseConcat() {
  OpDef def = ops::Allocating(
      "SparseConcat", 3, {"output_indices", "output_values", "output_shape"}, InferSparseConcat);
  def.max_inputs = -1;
  return def;
}

const OpRegistrar kSparse[] = {
    OpRegistrar(Fixed("SparseReorder", 3, {"output_indices", "output_values"}, InferReorder)),
    OpRegistrar(SparseConcat()),
    OpRegistrar(
        ops::Allocating("SparseAdd", 7, {"sum_indices", "sum_values", "sum_shape"}, InferPair)),
    OpRegistrar(
        ops::Allocating("SparseSparseMaximum", 6, {"output_indices", "output_values"}, InferPair)),
    OpRegistrar(
        ops::Allocating("SparseSparseMinimum", 6, {"output_indices", "output_values"}, InferPair)),
    OpRegistrar(ops::Allocating("SparseSlice", 5,
                                {"output_indices", "output_values", "output_shape"}, InferSlice)),
    OpRegistrar(ops::Allocating("SparseSplit", 4,
                                {"output_indices:num_split", "output_values:num_split",
                                 "output_shape:num_split"},
                                InferSplit),
                "int64 int64 T int64"),
    OpRegistrar(ops::Allocating("SparseReduceSum", 4, {"output"}, InferSparseReduce)),
    OpRegistrar(ops::Allocating("SparseReduceMax", 4, {"output"}, InferSparseReduce)),
    OpRegistrar(Fixed("SparseDenseCwiseAdd", 4, {"output"}, InferWithDense)),
    OpRegistrar(Fixed("SparseDenseCwiseMul", 4, {"output"}, InferWithDense)),
    OpRegistrar(Fixed("SparseDenseCwiseDiv", 4, {"output"}, InferWithDense)),
    OpRegistrar(Fixed("SparseTensorDenseAdd", 4, {"output"}, InferDenseAdd), "i T i T"),
    OpRegistrar(Fixed("SparseSoftmax", 3, {"output"}, InferSparseSoftmax)),
};

}  // namespace
}  // namespace floe
