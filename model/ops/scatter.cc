// Ops that read or write places which an index tensor names.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferOneHot(const InferContext& c) {
  const SymShape& in = c.shape(0);
  const DType dtype = c.dtype(2);
  std::vector<Dim> depth;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &depth));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 2, 0));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 3, 0));
  if (!in.rank_known()) return ops::One(dtype, SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.attrs().Int("axis", -1), in.rank() + 1));
  if (known && depth.size() != 1) return Bad("depth is no scalar");
  if (known && depth[0].concrete() && depth[0].size() < 0)
    return Bad(absl::StrCat("depth ", depth[0].size(), " is negative"));
  SymShape out;
  for (int i = 0; i <= in.rank(); ++i) {
    if (i == axis) out.push_back(known ? depth[0] : Dim::Unknown());
    if (i < in.rank()) out.push_back(in.dim(i));
  }
  return ops::One(dtype, std::move(out));
}

RowMark OneHotRows(const RowContext& c) {
  for (size_t i = 2; i < c.marks.size(); ++i) {
    if (c.marks[i] != RowMark::kConstant) return RowMark::kMixed;
  }
  const int64_t axis = c.node.attrs.Int("axis", -1);
  const SymShape& out = c.outputs[0].shape;
  return ops::MarkOfData(c, 0, out.rank_known() && axis != 0 && axis != -out.rank());
}

const OpRegistrar kOneHot({.name = "OneHot",
                           .min_inputs = 4,
                           .max_inputs = 4,
                           .infer = InferOneHot,
                           .rows = OneHotRows,
                           .shape_inputs = 2,
                           .input_types = "T int32 U U",
                           .tensorflow = {"OneHot"}});

// params[batch...] at indices[..., :]: the last dim of the indices names a place.
absl::StatusOr<Types> InferGatherNd(const InferContext& c) {
  const SymShape &params = c.shape(0), &indices = c.shape(1);
  const int64_t batch = c.attrs().Int("batch_dims");
  if (!params.rank_known() || !indices.rank_known() || indices.rank() == 0 ||
      !indices.dim(indices.rank() - 1).concrete()) {
    return ops::One(c.dtype(0), SymShape::UnknownRank());
  }
  const int64_t depth = indices.dim(indices.rank() - 1).size();
  if (batch < 0 || batch >= indices.rank() || depth > params.rank() - batch) {
    return Bad(absl::StrCat("indices ", indices.ToString(), " name more axes than ",
                            params.ToString(), " has"));
  }
  for (int i = 0; i < batch; ++i) {
    if (ops::Differ(params.dim(i), indices.dim(i)))
      return Bad(absl::StrCat("batch dimensions of ", params.ToString(), " and ",
                              indices.ToString(), " differ"));
  }
  SymShape out;
  for (int i = 0; i + 1 < indices.rank(); ++i) out.push_back(indices.dim(i));
  for (int i = static_cast<int>(batch + depth); i < params.rank(); ++i)
    out.push_back(params.dim(i));
  return ops::One(c.dtype(0), std::move(out));
}

RowMark GatherNdRows(const RowContext& c) {
  for (RowMark mark : c.marks) {
    if (mark == RowMark::kUnknown || mark == RowMark::kMixed) return mark;
  }
  if (c.marks[0] == RowMark::kConstant) {
    if (c.marks[1] == RowMark::kConstant) return ops::Checked(RowMark::kConstant, c);
    const SymShape& indices = c.inputs[1].type.shape;
    return indices.rank_known() && indices.rank() >= 2 ? ops::Checked(RowMark::kRows, c)
                                                       : RowMark::kMixed;
  }
  const bool paired = c.node.attrs.Int("batch_dims") > 0 && c.marks[1] == RowMark::kRows &&
                      c.inputs[0].type.shape.dim(0) == c.inputs[1].type.shape.dim(0);
  return paired ? ops::Checked(RowMark::kRows, c) : RowMark::kMixed;
}

const OpRegistrar kGatherNd({.name = "GatherNd",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .infer = InferGatherNd,
                             .rows = GatherNdRows,
                             .tensorflow = {"GatherNd"}});

absl::StatusOr<Types> InferScatterNd(const InferContext& c) {
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(2, &dims));
  if (!known) return ops::One(c.dtype(1), SymShape::UnknownRank());
  SymShape out;
  for (Dim d : dims) {
    if (d.concrete() && d.size() < 0)
      return Bad(absl::StrCat("dimension ", d.size(), " is negative"));
    out.push_back(d);
  }
  return ops::One(c.dtype(1), std::move(out));
}

RowMark ScatterRows(const RowContext& c) { return ops::Checked(RowsNever(c), c); }

const OpRegistrar kScatterNd({.name = "ScatterNd",
                              .min_inputs = 3,
                              .max_inputs = 3,
                              .infer = InferScatterNd,
                              .rows = ScatterRows,
                              .shape_inputs = 4,
                              .input_types = "T U T",
                              .tensorflow = {"ScatterNd"}});

OpDef TensorScatter(const std::string& name) {
  return {.name = name,
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = InferSame,
          .rows = ScatterRows,
          .in_place = 1,
          .tensorflow = {name}};
}
const OpRegistrar kTensorScatter[] = {
    OpRegistrar(TensorScatter("TensorScatterUpdate"), "T U T"),
    OpRegistrar(TensorScatter("TensorScatterAdd"), "T i T"),
    OpRegistrar(TensorScatter("TensorScatterSub"), "T i T"),
    OpRegistrar(TensorScatter("TensorScatterMin"), "T i T"),
    OpRegistrar(TensorScatter("TensorScatterMax"), "T i T"),
};

// Inputs: indices, shape, values, default.
absl::StatusOr<Types> InferSparseToDense(const InferContext& c) {
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &dims));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 3, 0));
  if (!known) return ops::One(c.dtype(2), SymShape::UnknownRank());
  SymShape out;
  for (Dim d : dims) out.push_back(d);
  return ops::One(c.dtype(2), std::move(out));
}
const OpRegistrar kSparseToDense({.name = "SparseToDense",
                                  .min_inputs = 4,
                                  .max_inputs = 4,
                                  .infer = InferSparseToDense,
                                  .rows = ScatterRows,
                                  .shape_inputs = 2,
                                  .input_types = "i i T T",
                                  .tensorflow = {"SparseToDense"}});

// indices [n, 2], values, shape of a sparse matrix; a dense one. Either may be transposed.
absl::StatusOr<Types> InferSparseMatMul(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 3, 2));
  const bool adjoint_a = c.attrs().Bool("adjoint_a"), adjoint_b = c.attrs().Bool("adjoint_b");
  Dim rows = Dim::Unknown(), inner = Dim::Unknown();
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(2, &dims));
  if (known && dims.size() != 2)
    return Bad(absl::StrCat("a_shape has ", dims.size(), " elements, expected 2"));
  if (known) {
    rows = dims[adjoint_a ? 1 : 0];
    inner = dims[adjoint_a ? 0 : 1];
    if ((rows.concrete() && rows.size() < 0) || (inner.concrete() && inner.size() < 0))
      return Bad(absl::StrCat("a_shape holds ", rows.ToString(), " and ", inner.ToString()));
  }
  const SymShape b = c.shape(3).rank_known() ? c.shape(3) : ops::UnknownDims(2);
  if (ops::Differ(inner, b.dim(adjoint_b ? 1 : 0)))
    return Bad(absl::StrCat("inner dims ", inner.ToString(), " and ",
                            b.dim(adjoint_b ? 1 : 0).ToString(), " differ"));
  return ops::One(c.dtype(1), {rows, b.dim(adjoint_b ? 0 : 1)});
}
const OpRegistrar kSparseMatMul({.name = "SparseTensorDenseMatMul",
                                 .min_inputs = 4,
                                 .max_inputs = 4,
                                 .infer = InferSparseMatMul,
                                 .rows = ScatterRows,
                                 .shape_inputs = 4,
                                 .input_types = "i T int64 T",
                                 .tensorflow = {"SparseTensorDenseMatMul"}});

const OpRegistrar kInvert({.name = "InvertPermutation",
                           .min_inputs = 1,
                           .max_inputs = 1,
                           .infer = InferSame,
                           .rows = ScatterRows,
                           .input_types = "i",
                           .tensorflow = {"InvertPermutation"}});

absl::StatusOr<Types> InferTopK(const InferContext& c) {
  const SymShape& in = c.shape(0);
  FLOE_ASSIGN_OR_RETURN(const DType index,
                        ops::TypeAttrOf(c, "index_type", DType::kInt32,
                                        {DType::kInt16, DType::kInt32, DType::kInt64}));
  if (!in.rank_known()) return Types{{c.dtype(0), in}, {index, in}};
  if (in.rank() == 0) return Bad("input is a scalar");
  std::vector<int64_t> k;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &k));
  SymShape out = in;
  const Dim width = in.dim(in.rank() - 1);
  if (known && (k.size() != 1 || k[0] < 0)) return Bad("k is no number of at least 0");
  if (known && width.concrete() && width.size() < k[0])
    return Bad(absl::StrCat("k is ", k[0], ", the last dimension ", width.size()));
  out.set_dim(in.rank() - 1, known ? Dim(k[0]) : Dim::Unknown());
  return Types{{c.dtype(0), out}, {index, out}};
}
RowMark LastAxisRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  return ops::MarkOfData(c, 0, in.rank_known() && in.rank() >= 2);
}
const OpRegistrar kTopK({.name = "TopKV2",
                         .min_inputs = 2,
                         .max_inputs = 2,
                         .output_names = {"values", "indices"},
                         .infer = InferTopK,
                         .rows = LastAxisRows,
                         .shape_inputs = 2,
                         .tensorflow = {"TopKV2"}});

// Computed exactly, as TensorFlow's kernel for CPUs does.
absl::StatusOr<Types> InferApproxTopK(const InferContext& c) {
  SymShape out = c.shape(0);
  if (!out.rank_known()) return Types{{c.dtype(0), out}, {DType::kInt32, out}};
  if (out.rank() == 0) return Bad("input is a scalar");
  const int64_t axis = c.attrs().Int("reduction_dimension", -1), k = c.attrs().Int("k");
  const int last = out.rank() - 1;
  if (axis != -1 && axis != last)
    return Bad(absl::StrCat("reduction_dimension is ", axis, ", expected -1"));
  if (k < 0) return Bad(absl::StrCat("k is ", k));
  if (out.dim(last).concrete() && out.dim(last).size() < k)
    return Bad(absl::StrCat("k is ", k, ", the last dimension ", out.dim(last).size()));
  out.set_dim(last, Dim(k));
  return Types{{c.dtype(0), out}, {DType::kInt32, out}};
}
const OpRegistrar kApproxTopK({.name = "ApproxTopK",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .output_names = {"values", "indices"},
                               .infer = InferApproxTopK,
                               .rows = LastAxisRows,
                               .tensorflow = {"ApproxTopK"},
                               .limits = "reduction_dimension -1 alone"});

// data rows are combined by segment id; input 2 tells how many segments there are.
absl::StatusOr<Types> InferUnsortedSegment(const InferContext& c) {
  const SymShape &data = c.shape(0), &ids = c.shape(1);
  std::vector<int64_t> count;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(2, &count));
  if (!data.rank_known() || !ids.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (ids.rank() > data.rank())
    return Bad(absl::StrCat("segment ids ", ids.ToString(), " are no prefix of ", data.ToString()));
  if (known && (count.size() != 1 || count[0] < 0))
    return Bad("num_segments is no number of at least 0");
  SymShape out = {known ? Dim(count[0]) : Dim::Unknown()};
  for (int i = ids.rank(); i < data.rank(); ++i) out.push_back(data.dim(i));
  return ops::One(c.dtype(0), std::move(out));
}
OpDef UnsortedSegment(const std::string& name) {
  return {.name = name,
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = InferUnsortedSegment,
          .rows = ScatterRows,
          .shape_inputs = 4,
          .tensorflow = {name}};
}
const OpRegistrar kUnsortedSegment[] = {
    OpRegistrar(UnsortedSegment("UnsortedSegmentSum"), "T U i"),
    OpRegistrar(UnsortedSegment("UnsortedSegmentProd"), "T i j"),
    OpRegistrar(UnsortedSegment("UnsortedSegmentMax"), "T i j"),
    OpRegistrar(UnsortedSegment("UnsortedSegmentMin"), "T i j"),
    OpRegistrar(UnsortedSegment("UnsortedSegmentJoin"), "string i j"),
};

// Inputs: data, indices into its rows, segment ids of the indices, number of segments.
absl::StatusOr<Types> InferSparseSegment(const InferContext& c) {
  SymShape out = c.shape(0);
  std::vector<int64_t> count;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(3, &count));
  if (!out.rank_known()) return ops::One(c.dtype(0), out);
  if (out.rank() == 0) return Bad("data is a scalar");
  if (known && (count.size() != 1 || count[0] < 0))
    return Bad("num_segments is no number of at least 0");
  out.set_dim(0, known ? Dim(count[0]) : Dim::Unknown());
  return ops::One(c.dtype(0), std::move(out));
}
OpDef SparseSegmentOp(const std::string& name) {
  return {.name = name,
          .min_inputs = 4,
          .max_inputs = 4,
          .infer = InferSparseSegment,
          .rows = ScatterRows,
          .shape_inputs = 8,
          .tensorflow = {name}};
}
const OpRegistrar kSparseSegment[] = {
    OpRegistrar(SparseSegmentOp("SparseSegmentSumWithNumSegments"), "T i j k"),
    OpRegistrar(SparseSegmentOp("SparseSegmentMeanWithNumSegments"), "T i j k"),
    OpRegistrar(SparseSegmentOp("SparseSegmentSqrtNWithNumSegments"), "T i j k"),
};

// Inputs: values, size, weights (possibly empty).
absl::StatusOr<Types> InferDenseBincount(const InferContext& c) {
  std::vector<int64_t> size;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &size));
  const SymShape& in = c.shape(0);
  const Dim width = known && size.size() == 1 ? Dim(size[0]) : Dim::Unknown();
  if (!in.rank_known()) return ops::One(c.dtype(2), SymShape::UnknownRank());
  if (in.rank() == 1) return ops::One(c.dtype(2), {width});
  if (in.rank() == 2) return ops::One(c.dtype(2), {in.dim(0), width});
  return Bad(absl::StrCat("input has shape ", in.ToString(), ", expected rank 1 or 2"));
}
RowMark BincountRows(const RowContext& c) {
  if (c.marks[2] != RowMark::kConstant) return RowMark::kMixed;
  return LastAxisRows(c);
}
const OpRegistrar kBincount({.name = "DenseBincount",
                             .min_inputs = 3,
                             .max_inputs = 3,
                             .infer = InferDenseBincount,
                             .rows = BincountRows,
                             .shape_inputs = 2,
                             .input_types = "i i T",
                             .tensorflow = {"DenseBincount"}});

// The first half of the inputs are indices, the second the data. The size is known with the
// indices.
absl::StatusOr<Types> InferDynamicStitch(const InferContext& c) {
  const int n = c.num_inputs() / 2;
  if (c.num_inputs() != 2 * n)
    return Bad(absl::StrCat(c.num_inputs(), " inputs are no indices and as many data"));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, n));
  int64_t largest = -1;
  bool known = true;
  SymShape rest = SymShape::UnknownRank();
  for (int i = 0; i < n; ++i) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, DType::kInt32));
    std::vector<int64_t> indices;
    FLOE_ASSIGN_OR_RETURN(const bool have, c.IntsOf(i, &indices));
    known = known && have;
    for (int64_t index : indices) largest = std::max(largest, index);
    const SymShape &ids = c.shape(i), &data = c.shape(n + i);
    if (!ids.rank_known() || !data.rank_known()) continue;
    if (ids.rank() > data.rank())
      return Bad(absl::StrCat("indices ", ids.ToString(), " are no prefix of ", data.ToString()));
    for (int k = 0; k < ids.rank(); ++k) {
      if (ops::Differ(ids.dim(k), data.dim(k)))
        return Bad(absl::StrCat("indices ", ids.ToString(), " are no prefix of ", data.ToString()));
    }
    SymShape inner;
    for (int k = ids.rank(); k < data.rank(); ++k) inner.push_back(data.dim(k));
    FLOE_ASSIGN_OR_RETURN(rest, ops::Merge(rest, inner));
  }
  if (!rest.rank_known()) return ops::One(c.dtype(n), rest);
  SymShape out = {known ? Dim(largest + 1) : Dim::Unknown()};
  for (Dim d : rest.dims()) out.push_back(d);
  return ops::One(c.dtype(n), std::move(out));
}
const OpRegistrar kStitch({.name = "DynamicStitch",
                           .min_inputs = 2,
                           .max_inputs = -1,
                           .infer = InferDynamicStitch,
                           .rows = ScatterRows,
                           .tensorflow = {"DynamicStitch", "ParallelDynamicStitch"}});

}  // namespace
}  // namespace floe
