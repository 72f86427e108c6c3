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
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, size, 0));
  std::vector<int64_t> sizes;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(size, &sizes));
  if (known && (sizes.size() != 1 || sizes[0] < 0)) return Bad("size is no number of at least 0");
  const Dim width = known ? Dim(sizes[0]) : Dim::Unknown();
  const std::string& op = c.node.op->name;
  if (op == "Bincount") return ops::One(c.dtype(size + 1), {width});
  if (op == "RaggedBincount") {
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 1));
    return ops::One(c.dtype(size + 1), {Dim::Unknown(), width});
  }
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
OpDef Count(const std::string& name, int inputs) {
  return ops::Allocating(name, inputs, {"output_indices", "output_values", "output_dense_shape"},
                         InferCount);
}

// sorted rows, values to place in each of them.
absl::StatusOr<Types> InferBound(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 2));
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "out_type", DType::kInt32));
  if (ops::RankOf(c, 0) == 2 && ops::RankOf(c, 1) == 2 &&
      ops::Differ(c.shape(0).dim(0), c.shape(1).dim(0)))
    return Bad(absl::StrCat("sorted_inputs ", c.shape(0).ToString(), " and values ",
                            c.shape(1).ToString(), " differ in rows"));
  return ops::One(dtype, c.shape(1));
}
RowMark BoundRows(const RowContext& c) {
  const SymShape &sorted = c.inputs[0].type.shape, &values = c.inputs[1].type.shape;
  const bool both = c.marks[0] == RowMark::kRows && c.marks[1] == RowMark::kRows &&
                    sorted.rank_known() && sorted.rank() == 2 && values.rank_known() &&
                    values.rank() == 2 && sorted.dim(0) == values.dim(0);
  return ops::Checked(both ? RowMark::kRows : RowsNever(c), c);
}

// values, range, number of bins.
absl::StatusOr<Types> InferHistogram(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "dtype", DType::kInt32));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, c.dtype(0)));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 2, DType::kInt32));
  std::vector<int64_t> bins;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(2, &bins));
  if (known && (bins.size() != 1 || bins[0] < 1)) return Bad("nbins is no number of at least 1");
  return ops::One(dtype, {known ? Dim(bins[0]) : Dim::Unknown()});
}

// flat indices, dims -> a column of places for each index.
absl::StatusOr<Types> InferUnravel(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  const int rank = ops::RankOf(c, 0);
  if (rank > 1) return Bad("indices must be a scalar or a vector");
  const Dim dims = ops::RankOf(c, 1) == 1 ? c.shape(1).dim(0) : Dim::Unknown();
  if (rank < 0) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (rank == 0) return ops::One(c.dtype(0), {dims});
  return ops::One(c.dtype(0), {dims, c.shape(0).dim(0)});
}

// input, n -> without its last dim.
absl::StatusOr<Types> InferNth(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 0));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kInt32));
  const int rank = ops::RankOf(c, 0);
  if (rank < 0) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (rank == 0) return Bad("input is a scalar");
  SymShape out;
  for (int i = 0; i + 1 < rank; ++i) out.push_back(c.shape(0).dim(i));
  return ops::One(c.dtype(0), std::move(out));
}
RowMark NthRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  if (!c.OthersConstant(1)) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, in.rank_known() && in.rank() >= 2);
}

OpDef Fixed(const std::string& name, int inputs,
            absl::StatusOr<Types> (*infer)(const InferContext&), RowRule rows,
            uint64_t shape_inputs = 0) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .infer = infer,
          .rows = rows,
          .shape_inputs = shape_inputs,
          .tensorflow = {name}};
}

const OpRegistrar kCounting[] = {
    OpRegistrar(Fixed("Bincount", 3, InferBincount, ops::NoRows), "int32 int32 T"),
    OpRegistrar(ops::Allocating("RaggedBincount", 4, {"output"}, InferBincount), "int64 i i T"),
    OpRegistrar(ops::Allocating("SparseBincount", 5, {"output"}, InferBincount),
                "int64 i int64 i T"),
    OpRegistrar(Count("DenseCountSparseOutput", 2)),
    OpRegistrar(Count("SparseCountSparseOutput", 4)),
    OpRegistrar(Count("RaggedCountSparseOutput", 3)),
    OpRegistrar(Fixed("LowerBound", 2, InferBound, BoundRows), "T T"),
    OpRegistrar(Fixed("UpperBound", 2, InferBound, BoundRows), "T T"),
    OpRegistrar(Fixed("HistogramFixedWidth", 3, InferHistogram, ops::NoRows)),
    OpRegistrar(Fixed("UnravelIndex", 2, InferUnravel, ops::NoRows), "i i"),
    OpRegistrar(Fixed("NthElement", 2, InferNth, NthRows)),
};

}  // namespace
}  // namespace floe
