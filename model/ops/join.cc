// Ops that put tensors together or lay them out again: Pack, ConcatV2, Transpose, Tile, Pad,
// GatherV2.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferPack(const InferContext& c) {
  SymShape each = c.shape(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    FLOE_ASSIGN_OR_RETURN(each, ops::Merge(each, c.shape(i)));
  }
  if (!each.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.attrs().Int("axis"), each.rank() + 1));
  SymShape out;
  for (int i = 0; i <= each.rank(); ++i) {
    if (i == axis) out.push_back(c.num_inputs());
    if (i < each.rank()) out.push_back(each.dim(i));
  }
  return ops::One(c.dtype(0), std::move(out));
}

// Inputs [first, last) are joined along an inner axis: their rows are joined row by row.
RowMark JoinedRows(const RowContext& c, int first, int last, bool inner_axis) {
  bool rows = false, all_rows = true;
  for (int i = first; i < last; ++i) {
    if (c.marks[i] == RowMark::kUnknown || c.marks[i] == RowMark::kMixed) return c.marks[i];
    rows = rows || c.marks[i] == RowMark::kRows;
    all_rows = all_rows && c.marks[i] == RowMark::kRows;
  }
  if (!rows) return ops::Checked(RowMark::kConstant, c);
  return inner_axis && all_rows ? ops::Checked(RowMark::kRows, c) : RowMark::kMixed;
}

RowMark PackRows(const RowContext& c) {
  const SymShape& out = c.outputs[0].shape;
  const int64_t axis = c.node.attrs.Int("axis");
  return JoinedRows(c, 0, static_cast<int>(c.marks.size()),
                    out.rank_known() && axis != 0 && axis != -out.rank());
}

const OpRegistrar kPack({.name = "Pack",
                         .infer = InferPack,
                         .rows = PackRows,
                         .time_major = ops::TimeMajorPack,
                         .values = ValueRule::kLinear,
                         .input_types = "T*"});

// The inputs but one, along the axis that this one gives: the last input, of version 1 the first.
template <bool kAxisFirst>
absl::StatusOr<Types> InferConcat(const InferContext& c) {
  const int parts = c.num_inputs() - 1, first = kAxisFirst ? 1 : 0, last = first + parts;
  const DType dtype = c.dtype(first);
  int rank = -1;
  for (int i = first; i < last; ++i) {
    if (!c.shape(i).rank_known()) continue;
    if (rank >= 0 && rank != c.shape(i).rank()) {
      return Bad(absl::StrCat("input ", i, " has shape ", c.shape(i).ToString(),
                              ", others have rank ", rank));
    }
    rank = c.shape(i).rank();
  }
  if (rank < 0) return ops::One(dtype, SymShape::UnknownRank());
  FLOE_ASSIGN_OR_RETURN(const int along, ops::AxisFrom(c, kAxisFirst ? 0 : parts, rank));
  if (along < 0) return ops::One(dtype, ops::UnknownDims(rank));
  Dim sum = 0;
  SymShape out = SymShape::UnknownRank();
  for (int i = first; i < last; ++i) {
    SymShape part = c.shape(i).rank_known() ? c.shape(i) : ops::UnknownDims(rank);
    sum = sum + part.dim(along);
    part.set_dim(along, Dim::Unknown());
    FLOE_ASSIGN_OR_RETURN(out, ops::Merge(out, part));
  }
  out.set_dim(along, sum);
  return ops::One(dtype, std::move(out));
}

template <bool kAxisFirst>
RowMark ConcatRows(const RowContext& c) {
  const int parts = static_cast<int>(c.marks.size()) - 1, first = kAxisFirst ? 1 : 0,
            of_axis = kAxisFirst ? 0 : parts;
  const SymShape& out = c.outputs[0].shape;
  std::vector<int64_t> axis;
  const bool known = ops::ConstantInts(c.inputs[of_axis], &axis) && axis.size() == 1;
  if (!known && c.marks[of_axis] == RowMark::kUnknown) return RowMark::kUnknown;
  if (!known && c.marks[of_axis] != RowMark::kConstant) return RowMark::kMixed;
  return JoinedRows(c, first, first + parts,
                    known && out.rank_known() && axis[0] != 0 && axis[0] != -out.rank());
}

const OpRegistrar kConcat[] = {
    OpRegistrar({.name = "ConcatV2",
                 .infer = InferConcat<false>,
                 .rows = ConcatRows<false>,
                 .time_major = ops::TimeMajorConcat,
                 .values = ValueRule::kLinear,
                 .value_inputs = InputRange{0, -2},
                 .input_types = "T* i"}),
    OpRegistrar({.name = "Concat",
                 .infer = InferConcat<true>,
                 .rows = ConcatRows<true>,
                 .values = ValueRule::kLinear,
                 .value_inputs = InputRange{1, -1},
                 .input_types = "int32 T*"}),
};

absl::StatusOr<Types> InferTranspose(const InferContext& c) {
  const SymShape& in = c.shape(0);
  std::vector<int64_t> perm;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &perm));
  if (!known)
    return ops::One(c.dtype(0),
                    in.rank_known() ? ops::UnknownDims(in.rank()) : SymShape::UnknownRank());
  const int rank = static_cast<int>(perm.size());
  if (!in.rank_known()) return ops::One(c.dtype(0), ops::UnknownDims(rank));
  if (rank != in.rank())
    return Bad(absl::StrCat("perm has ", rank, " elements, input has shape ", in.ToString()));
  std::vector<bool> seen(rank, false);
  SymShape out;
  for (int64_t p : perm) {
    FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(p, rank));
    if (seen[axis]) return Bad(absl::StrCat("perm names axis ", axis, " twice"));
    seen[axis] = true;
    out.push_back(in.dim(axis));
  }
  return ops::One(c.dtype(0), std::move(out));
}

RowMark TransposeRows(const RowContext& c) {
  std::vector<int64_t> perm;
  if (!ops::ConstantInts(c.inputs[1], &perm)) {
    return c.marks[0] == RowMark::kUnknown ? RowMark::kUnknown : RowMark::kMixed;
  }
  const int64_t rank = static_cast<int64_t>(perm.size());
  return ops::MarkOfData(c, 0, !perm.empty() && (perm[0] == 0 || perm[0] == -rank));
}

const OpRegistrar kTranspose({.name = "Transpose",
                              .infer = InferTranspose,
                              .rows = TransposeRows,
                              .time_major = ops::TimeMajorTranspose,
                              .values = ValueRule::kLinear,
                              .shape_inputs = 2,
                              .input_types = "T i"});
const OpRegistrar kConjugateTranspose({.name = "ConjugateTranspose",
                                       .infer = InferTranspose,
                                       .rows = TransposeRows,
                                       .shape_inputs = 2,
                                       .input_types = "T i"});

absl::StatusOr<Types> InferTile(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  std::vector<Dim> multiples;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &multiples));
  if (!known) return ops::One(c.dtype(0), ops::UnknownDims(in.rank()));
  if (static_cast<int>(multiples.size()) != in.rank()) {
    return Bad(absl::StrCat("multiples has ", multiples.size(), " elements, input has shape ",
                            in.ToString()));
  }
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (multiples[i].concrete() && multiples[i].size() < 0)
      return Bad(absl::StrCat("multiple ", multiples[i].size(), " is negative"));
    out.push_back(in.dim(i) * multiples[i]);
  }
  return ops::One(c.dtype(0), std::move(out));
}

RowMark TileRows(const RowContext& c) {
  const SymShape &in = c.inputs[0].type.shape, &out = c.outputs[0].shape;
  // A constant repeated rows times is the same block for each row.
  if (c.marks[0] == RowMark::kConstant && in.concrete() && ops::LeadingRows(c.outputs[0]))
    return RowMark::kRows;
  const bool keeps = in.rank_known() && out.rank_known() && in.rank() > 0 && out.rank() > 0 &&
                     in.dim(0) == out.dim(0);
  return ops::MarkOfData(c, 0, keeps);
}

const OpRegistrar kTile({.name = "Tile",
                         .infer = InferTile,
                         .rows = TileRows,
                         .values = ValueRule::kLinear,
                         .shape_inputs = 2,
                         .input_types = "T i"});

// Pads of every axis: [low, high] pairs in input 1. MirrorPad allows them up to the size of the
// axis.
absl::StatusOr<Types> InferPad(const InferContext& c) {
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return ops::One(c.dtype(0), SymShape::UnknownRank());
  std::vector<Dim> pads;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &pads));
  if (!known) return ops::One(c.dtype(0), ops::UnknownDims(in.rank()));
  if (static_cast<int>(pads.size()) != 2 * in.rank()) {
    return Bad(
        absl::StrCat("paddings has ", pads.size() / 2, " pairs, input has shape ", in.ToString()));
  }
  const std::string mode = c.attrs().String("mode");
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    for (int side = 0; side < 2; ++side) {
      const Dim pad = pads[2 * i + side];
      if (!pad.concrete()) continue;
      if (pad.size() < 0)
        return Bad(absl::StrCat("padding ", pad.size(), " of axis ", i, " is negative"));
      const int64_t reach = mode.empty()           ? INT64_MAX
                            : in.dim(i).concrete() ? in.dim(i).size() - (mode == "REFLECT")
                                                   : INT64_MAX;
      if (pad.size() > reach)
        return Bad(absl::StrCat("padding ", pad.size(), " of axis ", i, " exceeds what ",
                                in.ToString(), " can mirror"));
    }
    out.push_back(in.dim(i) + pads[2 * i] + pads[2 * i + 1]);
  }
  return ops::One(c.dtype(0), std::move(out));
}

RowMark PadRows(const RowContext& c) {
  std::vector<int64_t> pads;
  if (!ops::ConstantInts(c.inputs[1], &pads)) {
    return c.marks[0] == RowMark::kUnknown ? RowMark::kUnknown : RowMark::kMixed;
  }
  if (c.marks.size() > 2 && c.marks[2] != RowMark::kConstant)
    return RowMark::kMixed;  // the value of PadV2
  return ops::MarkOfData(c, 0, pads.size() >= 2 && pads[0] == 0 && pads[1] == 0);
}

const OpRegistrar kPad[] = {
    OpRegistrar({.name = "Pad",
                 .infer = InferPad,
                 .rows = PadRows,
                 .values = ValueRule::kLinear,
                 .shape_inputs = 2,
                 .input_types = "T i"}),
    OpRegistrar({.name = "PadV2",
                 .infer = InferPad,
                 .rows = PadRows,
                 .shape_inputs = 2,
                 .input_types = "T i T[]"}),
    OpRegistrar({.name = "MirrorPad",
                 .infer = InferPad,
                 .rows = PadRows,
                 .shape_inputs = 2,
                 .input_types = "T i"}),
};

// params[:axis] + indices[batch_dims:] + params[axis + 1:], the first batch_dims axes being shared.
absl::StatusOr<Types> InferGather(const InferContext& c) {
  const SymShape &params = c.shape(0), &indices = c.shape(1);
  const DType dtype = c.dtype(0);
  if (!params.rank_known() || !indices.rank_known())
    return ops::One(dtype, SymShape::UnknownRank());
  int along = 0;
  if (c.num_inputs() > 2) {
    FLOE_ASSIGN_OR_RETURN(along, ops::AxisFrom(c, 2, params.rank()));
  } else {
    FLOE_ASSIGN_OR_RETURN(along, NormalizeAxis(0, params.rank()));
  }
  if (along < 0) return ops::One(dtype, SymShape::UnknownRank());
  int64_t batch = c.attrs().Int("batch_dims");
  if (batch < 0) batch += indices.rank();
  if (batch < 0 || batch > along || batch > indices.rank()) {
    return Bad(absl::StrCat("batch_dims ", batch, " with axis ", along, " and indices ",
                            indices.ToString()));
  }
  SymShape out;
  for (int i = 0; i < along; ++i) {
    if (i < batch && params.dim(i) != indices.dim(i) && params.dim(i).concrete() &&
        indices.dim(i).concrete()) {
      return Bad(absl::StrCat("batch dimensions of ", params.ToString(), " and ",
                              indices.ToString(), " differ"));
    }
    const bool unsure = i < batch && params.dim(i) != indices.dim(i) && params.dim(i).known() &&
                        indices.dim(i).known();
    out.push_back(unsure                                ? Dim::Unknown()
                  : params.dim(i).known() || i >= batch ? params.dim(i)
                                                        : indices.dim(i));
  }
  for (int i = static_cast<int>(batch); i < indices.rank(); ++i) out.push_back(indices.dim(i));
  for (int i = along + 1; i < params.rank(); ++i) out.push_back(params.dim(i));
  return ops::One(dtype, std::move(out));
}

RowMark GatherRows(const RowContext& c) {
  for (int i = 0; i < 2; ++i) {
    if (c.marks[i] == RowMark::kUnknown) return RowMark::kUnknown;
  }
  const SymShape& params = c.inputs[0].type.shape;
  std::vector<int64_t> axis = {0};
  if (c.inputs.size() > 2 && !ops::ConstantInts(c.inputs[2], &axis)) return RowMark::kMixed;
  const RowMark of_params = c.marks[0], of_indices = c.marks[1];
  if (of_params == RowMark::kConstant && of_indices == RowMark::kConstant)
    return ops::Checked(RowMark::kConstant, c);
  if (!params.rank_known() || axis.size() != 1) return RowMark::kMixed;
  const bool axis0 = axis[0] == 0 || axis[0] == -params.rank();
  const bool batched = c.node.attrs.Int("batch_dims") != 0;
  bool keeps = false;
  if (of_params == RowMark::kConstant && of_indices == RowMark::kRows)
    keeps = axis0 && !batched;  // an embedding
  if (of_params == RowMark::kRows && of_indices == RowMark::kConstant) keeps = !axis0 && !batched;
  if (of_params == RowMark::kRows && of_indices == RowMark::kRows) {
    keeps = c.node.attrs.Int("batch_dims") > 0 && params.dim(0) == c.inputs[1].type.shape.dim(0);
  }
  return keeps ? ops::Checked(RowMark::kRows, c) : RowMark::kMixed;
}

OpDef Gather(const char* name, const char* types) {
  return {.name = name,
          .infer = InferGather,
          .rows = GatherRows,
          .values = ValueRule::kLinear,
          .value_inputs = InputRange{0, 0},
          .input_types = types};
}
const OpRegistrar kGather[] = {OpRegistrar(Gather("GatherV2", "T U i")),
                               OpRegistrar(Gather("Gather", "T i"))};

}  // namespace
}  // namespace floe
