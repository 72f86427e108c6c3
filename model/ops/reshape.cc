// Ops about shapes: other shapes for the same bytes, and shapes as values.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

// The product of the dims that are not 0.
Dim WithoutZeros(const SymShape& shape) {
  Dim product = 1;
  for (const Dim d : shape.dims()) {
    if (d != Dim(0)) product = product * d;
  }
  return product;
}

absl::StatusOr<Types> InferReshapeTo(const InferContext& c) {
  std::vector<Dim> dims;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &dims));
  const DType dtype = c.dtype(0);
  if (!known) {
    FLOE_ASSIGN_OR_RETURN(SymShape open, ops::ShapeFrom(c, 1));
    return ops::One(dtype, std::move(open));
  }
  const Dim elements = c.shape(0).elements();
  SymShape out;
  Dim product = 1;
  int open = -1;
  for (Dim d : dims) {
    if (d == Dim(-1)) {
      if (open >= 0) return Bad("the shape has -1 twice");
      open = out.rank();
    } else if (d.concrete() && d.size() < 0) {
      return Bad(absl::StrCat("dimension ", d.size(), " is negative"));
    } else {
      product = product * d;
    }
    out.push_back(d);
  }
  const auto mismatch = [&] {
    return Bad(absl::StrCat("cannot reshape ", c.shape(0).ToString(), " to ", out.ToString()));
  };
  const bool both_numbers = elements.concrete() && product.concrete();
  if (open >= 0 && both_numbers && elements.size() == 0 && product.size() == 0) {
    // TensorFlow leaves dims of 0 out on both sides.
    out.set_dim(open, 1);
    const Dim from = WithoutZeros(c.shape(0)), to = WithoutZeros(out);
    out.set_dim(open, DivideExactly(from, to));
    if (from.concrete() && to.concrete() && !out.dim(open).known()) return mismatch();
  } else if (open >= 0) {
    if (both_numbers && (product.size() == 0 || elements.size() % product.size() != 0))
      return mismatch();
    out.set_dim(open, DivideExactly(elements, product));
  } else if (both_numbers && elements != product) {
    return mismatch();
  } else if (elements.known() && product.known() && elements != product) {
    return ops::One(dtype, ops::UnknownDims(out.rank()));  // fits only for some number of rows
  }
  return ops::One(dtype, std::move(out));
}

// Row-major blocks stay whole when dim 0 of both sides is a multiple of the rows.
RowMark SameBytesRows(const RowContext& c) { return ops::MarkOfData(c, 0, true); }

const OpRegistrar kReshape({.name = "Reshape",
                            .infer = InferReshapeTo,
                            .rows = SameBytesRows,
                            .time_major = ops::TimeMajorSameBytes,
                            .values = ValueRule::kLinear,
                            .alias = true,
                            .shape_inputs = 2,
                            .input_types = "T i"});

absl::StatusOr<Types> InferEnsureShape(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(
      SymShape shape,
      ops::Merge(c.shape(0), c.attrs().Get<SymShape>("shape", SymShape::UnknownRank())));
  return ops::One(c.dtype(0), std::move(shape));
}
const OpRegistrar kEnsureShape({.name = "EnsureShape",
                                .infer = InferEnsureShape,
                                .rows = SameBytesRows,
                                .values = ValueRule::kLinear,
                                .alias = true,
                                .input_types = "T"});

absl::StatusOr<Types> InferSqueeze(const InferContext& c) {
  const SymShape& in = c.shape(0);
  const DType dtype = c.dtype(0);
  if (!in.rank_known()) return ops::One(dtype, SymShape::UnknownRank());
  std::vector<int64_t> axes = c.attrs().Ints("squeeze_dims");
  if (axes.empty()) axes = c.attrs().Ints("axis");
  std::vector<bool> drop(in.rank(), false);
  for (int64_t axis : axes) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, in.rank()));
    if (in.dim(a).concrete() && in.dim(a).size() != 1) {
      return Bad(absl::StrCat("dimension ", a, " of ", in.ToString(), " is not 1"));
    }
    // Only one row could be squeezed away.
    if (in.dim(a).has_rows()) return ops::One(dtype, SymShape::UnknownRank());
    drop[a] = true;
  }
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.empty()) {
      if (!in.dim(i).concrete()) return ops::One(dtype, SymShape::UnknownRank());  // may be 1
      drop[i] = in.dim(i).size() == 1;
    }
    if (!drop[i]) out.push_back(in.dim(i));
  }
  return ops::One(dtype, std::move(out));
}

const OpRegistrar kSqueeze({.name = "Squeeze",
                            .infer = InferSqueeze,
                            .rows = SameBytesRows,
                            .time_major = ops::TimeMajorSameBytes,
                            .values = ValueRule::kLinear,
                            .alias = true,
                            .input_types = "T"});

absl::StatusOr<Types> InferExpandDims(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(const int at, ops::AxisFrom(c, 1, in.rank() + 1));
  if (at < 0) return ops::One(c.dtype(0), ops::UnknownDims(in.rank() + 1));
  SymShape out;
  for (int i = 0; i <= in.rank(); ++i) {
    if (i == at) out.push_back(1);
    if (i < in.rank()) out.push_back(in.dim(i));
  }
  return ops::One(c.dtype(0), std::move(out));
}

const OpRegistrar kExpandDims({.name = "ExpandDims",
                               .infer = InferExpandDims,
                               .rows = SameBytesRows,
                               .time_major = ops::TimeMajorSameBytes,
                               .values = ValueRule::kLinear,
                               .alias = true,
                               .shape_inputs = 2,
                               .input_types = "T i"});

Dim RankAsDim(const SymShape& shape) {
  return shape.rank_known() ? Dim(shape.rank()) : Dim::Unknown();
}

absl::StatusOr<Types> InferShape(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "out_type", DType::kInt32));
  Types types;
  for (const ValueInfo& input : c.inputs) types.push_back({dtype, {RankAsDim(input.type.shape)}});
  return types;
}

absl::StatusOr<Types> InferSize(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::IndexTypeAttr(c, "out_type", DType::kInt32));
  return ops::One(dtype, {});
}

absl::StatusOr<Types> InferRank(const InferContext&) { return ops::One(DType::kInt32, {}); }

// The number of rows is the same for no two batches.
RowMark ShapeRows(const RowContext& c) {
  for (const ValueInfo& input : c.inputs) {
    if (!input.type.shape.concrete()) return RowMark::kMixed;
  }
  return RowMark::kConstant;
}

RowMark RankRows(const RowContext& c) {
  return c.inputs[0].type.shape.rank_known() ? RowMark::kConstant : RowMark::kMixed;
}

OpDef OfShape(const char* name, ops::InferFunction infer, RowRule rows, ValueRule values) {
  return {.name = name,
          .infer = infer,
          .rows = rows,
          .values = values,
          .shape_inputs = 1,
          .input_types = "T"};
}
const OpRegistrar kShapes[] = {
    OpRegistrar(OfShape("Shape", InferShape, ShapeRows, ValueRule::kShapeOf)),
    OpRegistrar(OfShape("Size", InferSize, ShapeRows, ValueRule::kElementsOf)),
    OpRegistrar(OfShape("Rank", InferRank, RankRows, ValueRule::kRankOf)),
    OpRegistrar({.name = "ShapeN",
                 .output_names = {"output:N"},
                 .infer = InferShape,
                 .rows = ShapeRows,
                 .values = ValueRule::kShapeOf,
                 .input_types = "T*"}),
};

absl::StatusOr<Types> InferBroadcastTo(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape out, ops::ShapeFrom(c, 1));
  if (!c.inputs[1].constant.valid()) return ops::One(c.dtype(0), std::move(out));
  FLOE_ASSIGN_OR_RETURN(const SymShape both, BroadcastShapes(c.shape(0), out));
  if (both.rank_known() && both.rank() != out.rank()) {
    return Bad(absl::StrCat("cannot broadcast ", c.shape(0).ToString(), " to ", out.ToString()));
  }
  return ops::One(c.dtype(0), std::move(out));
}

// Rows stay rows when dim 0 is not repeated; a constant laid over the rows is the same in each.
RowMark BroadcastToRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  const SymShape& out = c.outputs[0].shape;
  if (c.marks[0] == RowMark::kConstant && in.concrete() && ops::LeadingRows(c.outputs[0])) {
    return in.rank() < out.rank() || in.dim(0) == Dim(1) ? RowMark::kRows : RowMark::kMixed;
  }
  const bool keeps = in.rank_known() && out.rank_known() && in.rank() == out.rank() &&
                     in.rank() > 0 && in.dim(0) == out.dim(0);
  return ops::MarkOfData(c, 0, keeps);
}

const OpRegistrar kBroadcastTo({.name = "BroadcastTo",
                                .infer = InferBroadcastTo,
                                .rows = BroadcastToRows,
                                .values = ValueRule::kLinear,
                                .shape_inputs = 2,
                                .input_types = "T i"});

}  // namespace
}  // namespace floe
