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
                           .infer = InferOneHot,
                           .rows = OneHotRows,
                           .shape_inputs = 2,
                           .input_types = "T int32 U[] U[]"});

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

const OpRegistrar kGatherNd(ops::Simple("GatherNd", InferGatherNd, GatherNdRows), "T U");

absl::StatusOr<Types> InferScatterNd(const InferContext& c) {
  if (!c.inputs[2].constant.valid()) return ops::One(c.dtype(1), SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(SymShape out, ops::ShapeFrom(c, 2));
  return ops::One(c.dtype(1), std::move(out));
}

const OpRegistrar kScatterNd({.name = "ScatterNd",
                              .infer = InferScatterNd,
                              .rows = ops::NoRows,
                              .shape_inputs = 4,
                              .input_types = "T U T"});

OpDef TensorScatter(const char* types) {
  return {.infer = InferSame, .rows = ops::NoRows, .in_place = 1, .input_types = types};
}
const ops::Family kUpdate({"TensorScatterUpdate"}, TensorScatter("T U T"));
const ops::Family kTensorScatter({"TensorScatterAdd", "TensorScatterSub", "TensorScatterMin",
                                  "TensorScatterMax"},
                                 TensorScatter("T i T"));

// Inputs: indices, shape, values, default.
absl::StatusOr<Types> InferSparseToDense(const InferContext& c) {
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &dims));
  if (!known) return ops::One(c.dtype(2), SymShape::UnknownRank());
  SymShape out;
  for (Dim d : dims) out.push_back(d);
  return ops::One(c.dtype(2), std::move(out));
}
const OpRegistrar kSparseToDense({.name = "SparseToDense",
                                  .infer = InferSparseToDense,
                                  .rows = ops::NoRows,
                                  .shape_inputs = 2,
                                  .input_types = "i i T T[]"});

// Indices, values, shape of a sparse matrix; a dense one. Either may be transposed.
absl::StatusOr<Types> InferSparseMatMul(const InferContext& c) {
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
                                 .infer = InferSparseMatMul,
                                 .rows = ops::NoRows,
                                 .shape_inputs = 4,
                                 .input_types = "i[_,_] T[_] int64 T[_,_]"});

const OpRegistrar kInvert(ops::Simple("InvertPermutation", InferSame, ops::NoRows), "i");

absl::StatusOr<Types> InferTopK(const InferContext& c) {
  const SymShape& in = c.shape(0);
  FLOE_ASSIGN_OR_RETURN(const DType index,
                        ops::TypeAttrOf(c, "index_type", DType::kInt32,
                                        {DType::kInt16, DType::kInt32, DType::kInt64}));
  if (!in.rank_known()) return Types{{c.dtype(0), in}, {index, in}};
  if (in.rank() == 0) return Bad("input is a scalar");
  FLOE_ASSIGN_OR_RETURN(const Dim k, ops::NumberFrom(c, 1, "k"));
  SymShape out = in;
  const Dim width = in.dim(in.rank() - 1);
  if (k.known() && width.concrete() && width.size() < k.size())
    return Bad(absl::StrCat("k is ", k.size(), ", the last dimension ", width.size()));
  out.set_dim(in.rank() - 1, k);
  return Types{{c.dtype(0), out}, {index, out}};
}
const OpRegistrar kTopK({.name = "TopKV2",
                         .output_names = {"values", "indices"},
                         .infer = InferTopK,
                         .rows = ops::RowsFromRank<2>,
                         .shape_inputs = 2,
                         .input_types = "T U"});

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
                               .output_names = {"values", "indices"},
                               .infer = InferApproxTopK,
                               .rows = ops::RowsFromRank<2>,
                               .input_types = "T",
                               .limits = "reduction_dimension -1 alone"});

// data rows are combined by segment id; input 2 tells how many segments there are.
absl::StatusOr<Types> InferUnsortedSegment(const InferContext& c) {
  const SymShape &data = c.shape(0), &ids = c.shape(1);
  FLOE_ASSIGN_OR_RETURN(const Dim count, ops::NumberFrom(c, 2, "num_segments"));
  if (!data.rank_known() || !ids.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  if (ids.rank() > data.rank())
    return Bad(absl::StrCat("segment ids ", ids.ToString(), " are no prefix of ", data.ToString()));
  SymShape out = {count};
  for (int i = ids.rank(); i < data.rank(); ++i) out.push_back(data.dim(i));
  return ops::One(c.dtype(0), std::move(out));
}
OpDef UnsortedSegment(const char* types) {
  return {
      .infer = InferUnsortedSegment, .rows = ops::NoRows, .shape_inputs = 4, .input_types = types};
}
const ops::Family kUnsortedSum({"UnsortedSegmentSum"}, UnsortedSegment("T U i"));
const ops::Family kUnsortedSegment({"UnsortedSegmentProd", "UnsortedSegmentMax",
                                    "UnsortedSegmentMin"},
                                   UnsortedSegment("T i j"));
const ops::Family kUnsortedJoin({"UnsortedSegmentJoin"}, UnsortedSegment("string i j"));

// Inputs: data, indices into its rows, segment ids of the indices, number of segments.
absl::StatusOr<Types> InferSparseSegment(const InferContext& c) {
  SymShape out = c.shape(0);
  FLOE_ASSIGN_OR_RETURN(const Dim count, ops::NumberFrom(c, 3, "num_segments"));
  if (!out.rank_known()) return ops::One(c.dtype(0), out);
  if (out.rank() == 0) return Bad("data is a scalar");
  out.set_dim(0, count);
  return ops::One(c.dtype(0), std::move(out));
}
const ops::Family kSparseSegment({"SparseSegmentSumWithNumSegments",
                                  "SparseSegmentMeanWithNumSegments",
                                  "SparseSegmentSqrtNWithNumSegments"},
                                 {.infer = InferSparseSegment,
                                  .rows = ops::NoRows,
                                  .shape_inputs = 8,
                                  .input_types = "T i j k"});

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
  return ops::RowsFromRank<2>(c);
}
const OpRegistrar kBincount({.name = "DenseBincount",
                             .infer = InferDenseBincount,
                             .rows = BincountRows,
                             .shape_inputs = 2,
                             .input_types = "i i T"});

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
                           .rows = ops::NoRows,
                           .tensorflow = {"DynamicStitch", "ParallelDynamicStitch"}});

}  // namespace
}  // namespace floe
