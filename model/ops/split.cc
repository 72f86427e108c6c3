// Ops that cut one tensor into several along an axis.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

// The attribute's number of outputs, which is the node's where it says so.
absl::StatusOr<int> OutputCount(const InferContext& c, const std::string& attr) {
  constexpr int64_t kMost = 1 << 16;  // as many as a node may have
  const int64_t count = c.attrs().Int(attr, -1);
  if (count > kMost) return Bad(absl::StrCat(attr, " is ", count));
  return count >= 0 ? static_cast<int>(count) : static_cast<int>(c.node.num_outputs);
}

// `sizes`: of each part along the axis. Unknown axis: every dim unknown.
absl::StatusOr<Types> Parts(const InferContext& c, int data, int axis_input,
                            const std::vector<Dim>& sizes) {
  const SymShape& in = c.shape(data);
  Types types(sizes.size(), TensorType{c.dtype(data), SymShape::UnknownRank()});
  if (!in.rank_known()) return types;
  FLOE_ASSIGN_OR_RETURN(const int along, ops::AxisFrom(c, axis_input, in.rank()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    types[i].shape = along < 0 ? ops::UnknownDims(in.rank()) : in;
    if (along >= 0) types[i].shape.set_dim(along, sizes[i]);
  }
  return types;
}

absl::StatusOr<Dim> WholeAlong(const InferContext& c, int data, int axis_input) {
  if (!c.shape(data).rank_known()) return Dim::Unknown();
  FLOE_ASSIGN_OR_RETURN(const int along, ops::AxisFrom(c, axis_input, c.shape(data).rank()));
  return along < 0 ? Dim::Unknown() : c.shape(data).dim(along);
}

absl::StatusOr<Types> InferSplitInto(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int count, OutputCount(c, "num_split"));
  if (count <= 0) return Bad(absl::StrCat("num_split is ", count));
  FLOE_ASSIGN_OR_RETURN(const Dim whole, WholeAlong(c, 1, 0));
  if (whole.concrete() && whole.size() % count != 0) {
    return Bad(absl::StrCat("cannot split ", whole.size(), " into ", count, " equal parts"));
  }
  return Parts(c, 1, 0, std::vector<Dim>(count, DivideExactly(whole, count)));
}

absl::StatusOr<Types> InferSplitV(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int count, OutputCount(c, "num_split"));
  std::vector<Dim> sizes;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.DimsOf(1, &sizes));
  if (!known) sizes.assign(count, Dim::Unknown());
  if (static_cast<int>(sizes.size()) != count)
    return Bad(absl::StrCat(sizes.size(), " sizes for ", count, " outputs"));
  FLOE_ASSIGN_OR_RETURN(const Dim whole, WholeAlong(c, 0, 2));
  Dim sum = 0;
  auto open = sizes.end();
  for (auto it = sizes.begin(); it != sizes.end(); ++it) {
    if (*it == Dim(-1)) {
      if (open != sizes.end()) return Bad("the sizes have -1 twice");
      open = it;
    } else {
      sum = sum + *it;
    }
  }
  if (open != sizes.end()) {
    *open = whole + sum * Dim(-1);
    if (open->concrete() && open->size() < 0)
      return Bad(absl::StrCat("the sizes exceed ", whole.ToString()));
  } else if (ops::Differ(whole, sum)) {
    return Bad(absl::StrCat("the sizes add up to ", sum.ToString(), ", not ", whole.ToString()));
  }
  return Parts(c, 0, 2, sizes);
}

RowMark RowsUnlessAxis0(const RowContext& c, int data, int axis_input) {
  std::vector<int64_t> axis;
  if (!ops::ConstantInts(c.inputs[axis_input], &axis) || axis.size() != 1) {
    return c.marks[data] == RowMark::kUnknown ? RowMark::kUnknown : RowMark::kMixed;
  }
  const SymShape& in = c.inputs[data].type.shape;
  const bool keeps = in.rank_known() && axis[0] != 0 && axis[0] != -in.rank();
  return ops::MarkOfData(c, data, keeps);
}
RowMark SplitRows(const RowContext& c) { return RowsUnlessAxis0(c, 1, 0); }
RowMark SplitVRows(const RowContext& c) {
  const RowMark mark = RowsUnlessAxis0(c, 0, 2);
  // Parts whose sizes are computed from data have unknown dims.
  for (const TensorType& type : c.outputs) {
    if (!type.shape.known()) return mark == RowMark::kUnknown ? mark : RowMark::kMixed;
  }
  return mark;
}

const OpRegistrar kSplit[] = {
    OpRegistrar({.name = "Split",
                 .output_names = {"output:num_split"},
                 .infer = InferSplitInto,
                 .rows = SplitRows,
                 .values = ValueRule::kLinear,
                 .shape_inputs = 1,
                 .input_types = "int32 T"}),
    OpRegistrar({.name = "SplitV",
                 .output_names = {"output:num_split"},
                 .infer = InferSplitV,
                 .rows = SplitVRows,
                 .values = ValueRule::kLinear,
                 .shape_inputs = 6,
                 .input_types = "T U int32"}),
};

absl::StatusOr<Types> InferUnpack(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const int count, OutputCount(c, "num"));
  const SymShape& in = c.shape(0);
  if (!in.rank_known()) return Types(count, TensorType{c.dtype(0), SymShape::UnknownRank()});
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.attrs().Int("axis"), in.rank()));
  if (ops::Differ(in.dim(axis), Dim(count))) {
    return Bad(absl::StrCat("dimension ", axis, " of ", in.ToString(), " is not ", count));
  }
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (i != axis) out.push_back(in.dim(i));
  }
  return Types(count, TensorType{c.dtype(0), out});
}

RowMark UnpackRows(const RowContext& c) {
  const int64_t axis = c.node.attrs.Int("axis");
  const SymShape& in = c.inputs[0].type.shape;
  if (c.outputs.empty()) return RowMark::kMixed;
  return ops::MarkOfData(c, 0, in.rank_known() && axis != 0 && axis != -in.rank());
}

const OpRegistrar kUnpack({.name = "Unpack",
                           .output_names = {"output:num"},
                           .infer = InferUnpack,
                           .rows = UnpackRows,
                           .time_major = ops::TimeMajorUnpack,
                           .values = ValueRule::kLinear,
                           .input_types = "T"});

}  // namespace
}  // namespace floe
