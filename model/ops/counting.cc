// Counting values, and finding places among sorted ones.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::Status CheckWeights(const InferContext& c, int i) {
  const DType dtype = c.dtype(i);
  if (dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kFloat32 ||
      dtype == DType::kFloat64)
    return absl::OkStatus();
  return Bad(absl::StrCat("weights are ", DTypeName(dtype),
                          ", expected int32, int64, float32 or float64"));
}

// arr, size, weights; ..., and with the places of the values before, or the rows' splits. Sizes are
// the last input but one.
absl::StatusOr<Types> InferBincount(const InferContext& c) {
  const int size = c.num_inputs() - 2;
  FLOE_RETURN_IF_ERROR(CheckWeights(c, size + 1));
  FLOE_ASSIGN_OR_RETURN(const Dim width, ops::NumberFrom(c, size, "size"));
  const std::string& op = c.node.op->name;
  if (op == "Bincount") return ops::One(c.dtype(size + 1), {width});
  if (op == "RaggedBincount") return ops::One(c.dtype(size + 1), {Dim::Unknown(), width});
  const Dim rank = ops::RankOf(c, 2) == 1 ? c.shape(2).dim(0) : Dim::Unknown();
  if (rank == Dim(1)) return ops::One(c.dtype(size + 1), {width});
  if (rank == Dim(2)) return ops::One(c.dtype(size + 1), {Dim::Unknown(), width});
  if (rank.concrete())
    return Bad(absl::StrCat("dense_shape has ", rank.size(), " elements, expected 1 or 2"));
  return ops::One(c.dtype(size + 1), SymShape::UnknownRank());
}

// values, weights; or indices, values, dense shape, weights; or splits, values, weights.
absl::StatusOr<Types> InferCount(const InferContext& c) {
  const int inputs = c.num_inputs(), values = inputs == 2 ? 0 : 1;
  FLOE_RETURN_IF_ERROR(CheckWeights(c, inputs - 1));
  if (c.dtype(values) != DType::kInt32 && c.dtype(values) != DType::kInt64)
    return Bad(
        absl::StrCat("values are ", DTypeName(c.dtype(values)), ", expected int32 or int64"));
  Dim rank = inputs == 3 ? Dim(2) : Dim::Unknown();
  if (inputs == 2 && ops::RankOf(c, 0) >= 0) rank = Dim(ops::RankOf(c, 0));
  if (inputs == 4 && ops::RankOf(c, 2) == 1) rank = c.shape(2).dim(0);
  if (rank.concrete() && rank != Dim(1) && rank != Dim(2))
    return Bad(absl::StrCat("values have ", rank.size(), " dims, expected 1 or 2"));
  return Types{{DType::kInt64, {Dim::Unknown(), rank}},
               ops::UnknownVector(c.dtype(inputs - 1)),
               {DType::kInt64, {rank}}};
}
OpDef Count(const char* name) {
  return ops::Allocating(name, {"output_indices", "output_values", "output_dense_shape"},
                         InferCount);
}

// sorted rows, values to place in each of them.
absl::StatusOr<Types> InferBound(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "out_type", DType::kInt32));
  return ops::One(dtype, c.shape(1));
}
RowMark BoundRows(const RowContext& c) {
  return ops::Checked(ops::PairedRows(c, 2, 2) ? RowMark::kRows : RowsNever(c), c);
}

// values, range, number of bins.
absl::StatusOr<Types> InferHistogram(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "dtype", DType::kInt32));
  FLOE_ASSIGN_OR_RETURN(const Dim bins, ops::NumberFrom(c, 2, "nbins", 1));
  return ops::One(dtype, {bins});
}

// flat indices, dims -> a column of places for each index.
absl::StatusOr<Types> InferUnravel(const InferContext& c) {
  const int rank = ops::RankOf(c, 0);
  if (rank > 1) return Bad("indices must be a scalar or a vector");
  const Dim dims = ops::DimOf(c, 1, 0);
  if (rank < 0) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (rank == 0) return ops::One(c.dtype(0), {dims});
  return ops::One(c.dtype(0), {dims, c.shape(0).dim(0)});
}

// input, n -> without its last dim.
absl::StatusOr<Types> InferNth(const InferContext& c) {
  const int rank = ops::RankOf(c, 0);
  if (rank < 0) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (rank == 0) return Bad("input is a scalar");
  SymShape out;
  for (int i = 0; i + 1 < rank; ++i) out.push_back(c.shape(0).dim(i));
  return ops::One(c.dtype(0), std::move(out));
}

const OpRegistrar kCounting[] = {
    OpRegistrar(ops::Simple("Bincount", InferBincount, ops::NoRows), "int32 int32[] T"),
    OpRegistrar(ops::Allocating("RaggedBincount", {"output"}, InferBincount), "int64[_] i i[] T"),
    OpRegistrar(ops::Allocating("SparseBincount", {"output"}, InferBincount),
                "int64 i int64 i[] T"),
    OpRegistrar(Count("DenseCountSparseOutput"), "T U"),
    OpRegistrar(Count("SparseCountSparseOutput"), "T U V W"),
    OpRegistrar(Count("RaggedCountSparseOutput"), "T U V"),
    OpRegistrar(ops::Simple("LowerBound", InferBound, BoundRows), "T[n,_] T[n,_]"),
    OpRegistrar(ops::Simple("UpperBound", InferBound, BoundRows), "T[n,_] T[n,_]"),
    OpRegistrar(ops::Simple("HistogramFixedWidth", InferHistogram, ops::NoRows), "T T int32"),
    OpRegistrar(ops::Simple("UnravelIndex", InferUnravel, ops::NoRows), "i i[_]"),
    OpRegistrar(ops::Simple("NthElement", InferNth, ops::RowsFromRankAlone<2>), "T int32[]"),
};

}  // namespace
}  // namespace floe
