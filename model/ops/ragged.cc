// Ragged tensors: dense values under nested row splits (rank 1, the first 0, the last the number of
// rows one level deeper).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

constexpr int64_t kMaxRaggedRank = 254;

DType SplitsType(const InferContext& c) { return ops::TypeAttr(c, "Tsplits", DType::kInt64); }

// The attribute `name` as a number of nested splits.
absl::StatusOr<int> RaggedRank(const InferContext& c, const std::string& name, int64_t least) {
  const int64_t rank = c.attrs().Int(name, least);
  if (rank >= least && rank <= kMaxRaggedRank) return static_cast<int>(rank);
  return Bad(absl::StrCat(name, " is ", rank, ", expected ", least, " to ", kMaxRaggedRank));
}

absl::Status ExpectCount(const InferContext& c, int64_t count) {
  if (c.num_inputs() == count) return absl::OkStatus();
  return Bad(absl::StrCat("has ", c.num_inputs(), " inputs, its attributes say ", count));
}

// Inputs [first, first + count) are splits of the type that the attribute says.
absl::Status ExpectSplits(const InferContext& c, int first, int count) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "Tsplits", DType::kInt64));
  for (int i = first; i < first + count; ++i) {
    if (c.dtype(i) != dtype)
      return Bad(absl::StrCat("input ", i, " has type ", DTypeName(c.dtype(i)), ", expected ",
                              DTypeName(dtype)));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, 1));
  }
  return absl::OkStatus();
}

// The shape with dim 0 unknown.
absl::StatusOr<SymShape> WithOpenDim0(SymShape shape) {
  if (!shape.rank_known()) return shape;
  if (shape.rank() == 0) return Bad("the values are a scalar");
  shape.set_dim(0, Dim::Unknown());
  return shape;
}

// starts, limits, deltas -> splits, values
absl::StatusOr<Types> InferRaggedRange(const InferContext& c) {
  for (int i = 0; i < 3; ++i) {
    if (ops::RankOf(c, i) > 1)
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(),
                              ", expected a scalar or a vector"));
  }
  FLOE_RETURN_IF_ERROR(ExpectSplits(c, 0, 0));
  Dim rows = 1;
  for (int i = 0; i < 3; ++i) {
    const int rank = ops::RankOf(c, i);
    if (rank < 0) rows = Dim::Unknown();
    if (rank == 1) {
      rows = c.shape(i).dim(0);
      break;
    }
  }
  return Types{{SplitsType(c), {rows.known() ? rows + Dim(1) : rows}},
               ops::UnknownVector(c.dtype(0))};
}

// splits..., values, indices -> splits..., values
absl::StatusOr<Types> InferRaggedGather(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int in, RaggedRank(c, "PARAMS_RAGGED_RANK", 1));
  FLOE_ASSIGN_OR_RETURN(const int out, RaggedRank(c, "OUTPUT_RAGGED_RANK", 0));
  FLOE_RETURN_IF_ERROR(ExpectCount(c, in + 2));
  FLOE_RETURN_IF_ERROR(ExpectSplits(c, 0, in));
  const int rank = ops::RankOf(c, in + 1);
  if (rank >= 0 && out != in + rank - 1)
    return Bad(absl::StrCat("OUTPUT_RAGGED_RANK is ", out, ", indices of rank ", rank,
                            " into params of ragged rank ", in, " give ", in + rank - 1));
  FLOE_ASSIGN_OR_RETURN(const SymShape values, WithOpenDim0(c.shape(in)));
  Types types(out, ops::UnknownVector(SplitsType(c)));
  types.push_back({c.dtype(in), values});
  return types;
}

// shape, values, default value, partitions...
absl::StatusOr<Types> InferToTensor(const InferContext& c) {
  const auto kinds = c.attrs().Get<std::vector<std::string>>("row_partition_types", {});
  FLOE_RETURN_IF_ERROR(ExpectCount(c, 3 + static_cast<int64_t>(kinds.size())));
  if (kinds.empty()) return Bad("row_partition_types is empty");
  const int ragged_rank = static_cast<int>(kinds.size()) - (kinds[0] == "FIRST_DIM_SIZE" ? 1 : 0);
  const SymShape& values = c.shape(1);
  if (values.rank_known() && values.rank() == 0) return Bad("the values are a scalar");
  SymShape out = SymShape::UnknownRank();
  if (values.rank_known()) {
    out = ops::UnknownDims(ragged_rank + 1);
    for (int i = 1; i < values.rank(); ++i) out.push_back(values.dim(i));
  }
  std::vector<int64_t> wanted;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(0, &wanted));
  if (!known || ops::RankOf(c, 0) == 0) return ops::One(c.dtype(1), out);
  SymShape asked;
  for (const int64_t d : wanted) {
    if (d < -1) return Bad(absl::StrCat("the shape has dimension ", d));
    asked.push_back(d < 0 ? Dim::Unknown() : Dim(d));
  }
  FLOE_ASSIGN_OR_RETURN(out, ops::Merge(out, asked));
  return ops::One(c.dtype(1), out);
}

// splits..., values -> one handle, or one a row
absl::StatusOr<Types> InferToVariant(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int rank, RaggedRank(c, "RAGGED_RANK", 0));
  FLOE_RETURN_IF_ERROR(ExpectCount(c, rank + 1));
  FLOE_RETURN_IF_ERROR(ExpectSplits(c, 0, rank));
  if (!c.attrs().Bool("batched_input")) return ops::One(DType::kVariant, {});
  const SymShape& outer = c.shape(0);  // the outermost splits, or the values
  if (!outer.rank_known()) return ops::One(DType::kVariant, {Dim::Unknown()});
  if (outer.rank() == 0) return Bad("a batch cannot be a scalar");
  Dim rows = outer.dim(0);
  if (rank > 0 && rows.known()) rows = rows + Dim(-1);
  return ops::One(DType::kVariant, {rows});
}

// handles -> splits..., values
absl::StatusOr<Types> InferFromVariant(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int out, RaggedRank(c, "output_ragged_rank", 0));
  FLOE_ASSIGN_OR_RETURN(const int in, RaggedRank(c, "input_ragged_rank", -1));
  FLOE_RETURN_IF_ERROR(ExpectSplits(c, 0, 0));
  const int batch = ops::RankOf(c, 0);
  if (batch >= 0 && (in >= 0 ? in + batch != out : out < batch))
    return Bad(absl::StrCat("output_ragged_rank is ", out, ", a batch of rank ", batch,
                            " of components of ragged rank ", in, " does not give that"));
  Types types(out, ops::UnknownVector(SplitsType(c)));
  types.push_back({ops::TypeAttr(c, "Tvalues", DType::kInvalid), SymShape::UnknownRank()});
  return types;
}

// splits..., values -> indices, values, dense shape
absl::StatusOr<Types> InferToSparse(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int rank, RaggedRank(c, "RAGGED_RANK", 1));
  FLOE_RETURN_IF_ERROR(ExpectCount(c, rank + 1));
  FLOE_RETURN_IF_ERROR(ExpectSplits(c, 0, rank));
  const int inner = ops::RankOf(c, rank);
  if (inner == 0) return Bad("the values are a scalar");
  const Dim width = inner < 0 ? Dim::Unknown() : Dim(rank + inner);
  const Dim count = inner < 0 ? Dim::Unknown() : c.shape(rank).elements();
  return Types{{DType::kInt64, {count, width}}, {c.dtype(rank), {count}}, {DType::kInt64, {width}}};
}

// rows of the values, values, number of rows, default -> rows, values, empty rows, where each
// value went
absl::StatusOr<Types> InferRaggedFillEmptyRows(const InferContext& c) {
  return Types{ops::UnknownVector(DType::kInt64),
               ops::UnknownVector(c.dtype(1)),
               ops::UnknownVector(DType::kBool),
               {DType::kInt64, c.shape(0)}};
}

// How many of a list of types the attribute holds.
int64_t Count(const InferContext& c, const char* attr) {
  return static_cast<int64_t>(c.attrs().Get<std::vector<DType>>(attr, {}).size());
}

// Ragged values, ragged splits; sparse indices, values and shapes; dense features -> values, splits
absl::StatusOr<Types> InferRaggedCross(const InferContext& c) {
  const int64_t ragged = Count(c, "ragged_values_types"), sparse = Count(c, "sparse_values_types"),
                dense = Count(c, "dense_types");
  if (Count(c, "ragged_splits_types") != ragged || c.attrs().Int("Nsparse") != sparse)
    return Bad("its attributes ask for different numbers of features");
  FLOE_RETURN_IF_ERROR(ExpectCount(c, 2 * ragged + 3 * sparse + dense));
  const std::string order = c.attrs().String("input_order");
  const auto in_order = [&order](char kind) {
    return std::count(order.begin(), order.end(), kind);
  };
  if (in_order('R') != ragged || in_order('S') != sparse || in_order('D') != dense ||
      order.size() != static_cast<size_t>(ragged + sparse + dense))
    return Bad(absl::StrCat("input_order '", order, "' is not that of ", ragged, " ragged, ",
                            sparse, " sparse and ", dense, " dense features"));
  for (int i = 0; i < c.num_inputs(); ++i) {
    const int64_t s = i - 2 * ragged;
    const bool splits = i >= ragged && i < 2 * ragged,
               values = i < ragged || (s >= sparse && s < 2 * sparse) || s >= 3 * sparse;
    if (c.dtype(i) != DType::kInt64 && !(values && c.dtype(i) == DType::kString) &&
        !(splits && c.dtype(i) == DType::kInt32))
      return Bad(absl::StrCat("input ", i, " is ", DTypeName(c.dtype(i))));
  }
  FLOE_ASSIGN_OR_RETURN(const DType splits,
                        ops::IndexTypeAttr(c, "out_row_splits_type", DType::kInt64));
  return Types{ops::UnknownVector(c.attrs().Bool("hashed_output") ? DType::kInt64 : DType::kString),
               ops::UnknownVector(splits)};
}

OpDef AtLeast(int inputs, OpDef def) {
  def.min_inputs = inputs;
  def.max_inputs = -1;
  return def;
}

const OpRegistrar kRagged[] = {
    OpRegistrar(
        ops::Allocating("RaggedRange", {"rt_nested_splits", "rt_dense_values"}, InferRaggedRange),
        "T T T"),
    OpRegistrar(ops::Allocating("RaggedGather",
                                {"output_nested_splits:OUTPUT_RAGGED_RANK", "output_dense_values"},
                                InferRaggedGather),
                "i* T j"),
    OpRegistrar(ops::Allocating("RaggedTensorToTensor", {"result"}, InferToTensor), "i T T j*"),
    OpRegistrar(
        AtLeast(1, ops::Allocating("RaggedTensorToVariant", {"encoded_ragged"}, InferToVariant)),
        "i* T"),
    OpRegistrar(ops::Allocating("RaggedTensorFromVariant",
                                {"output_nested_splits:output_ragged_rank", "output_dense_values"},
                                InferFromVariant),
                "variant"),
    OpRegistrar(
        ops::Allocating("RaggedTensorToSparse",
                        {"sparse_indices", "sparse_values", "sparse_dense_shape"}, InferToSparse),
        "i* T"),
    OpRegistrar(AtLeast(1, ops::Allocating("RaggedCross", {"output_values", "output_row_splits"},
                                           InferRaggedCross))),
    OpRegistrar(ops::Allocating("RaggedFillEmptyRows",
                                {"output_value_rowids", "output_values", "empty_row_indicator",
                                 "reverse_index_map"},
                                InferRaggedFillEmptyRows),
                "int64[_] T[_] int64[] T[]"),
};

}  // namespace
}  // namespace floe
