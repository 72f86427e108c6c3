// Reductions over axes that input 1 gives.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

absl::StatusOr<std::vector<bool>> ReducedAxes(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : axes) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank));
    if (reduced[a]) return Bad(absl::StrCat("axis ", a, " is named twice"));
    reduced[a] = true;
  }
  return reduced;
}

absl::StatusOr<SymShape> ReducedShape(const InferContext& c, const std::string& keep_attr) {
  const SymShape& in = c.shape(0);
  const bool keep = c.attrs().Bool(keep_attr);
  std::vector<int64_t> axes;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &axes));
  if (!in.rank_known()) return SymShape::UnknownRank();
  if (!known) return keep ? ops::UnknownDims(in.rank()) : SymShape::UnknownRank();
  FLOE_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(axes, in.rank()));
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[i]) {
      out.push_back(in.dim(i));
    } else if (keep) {
      out.push_back(1);
    }
  }
  return out;
}

absl::StatusOr<Types> InferReduce(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ReducedShape(c, "keep_dims"));
  return ops::One(c.dtype(0), std::move(shape));
}

// Rows stay apart when axis 0 is not among the axes.
RowMark ReduceRows(const RowContext& c) {
  const SymShape& in = c.inputs[0].type.shape;
  std::vector<int64_t> axes;
  if (!in.rank_known() || !ops::ConstantInts(c.inputs[1], &axes)) {
    return c.marks[0] == RowMark::kUnknown ? RowMark::kUnknown : RowMark::kMixed;
  }
  bool keeps = true;
  for (int64_t axis : axes) keeps = keeps && axis != 0 && axis != -in.rank();
  return ops::MarkOfData(c, 0, keeps);
}

OpDef Reduce(const char* types, ValueRule values = ValueRule::kNone) {
  return {.infer = InferReduce,
          .rows = ReduceRows,
          .values = values,
          .shape_inputs = 2,
          .input_types = types};
}

const ops::Family kReduce({"Mean", "Max", "Min", "EuclideanNorm"}, Reduce("T i"));
const ops::Family kSum({"Sum"}, Reduce("T i", ValueRule::kLinear));
const ops::Family kProd({"Prod"}, Reduce("T i", ValueRule::kProduct));
const ops::Family kTruth({"All", "Any"}, Reduce("bool i"));
const ops::Family kJoin({"ReduceJoin"}, Reduce("string int32"));

absl::StatusOr<Types> InferArg(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::TypeAttrOf(c, "output_type", DType::kInt64,
                                                           {DType::kInt16, DType::kUInt16,
                                                            DType::kInt32, DType::kInt64}));
  const SymShape& in = c.shape(0);
  std::vector<int64_t> axis;
  FLOE_ASSIGN_OR_RETURN(const bool known, c.IntsOf(1, &axis));
  if (!in.rank_known()) return ops::One(dtype, SymShape::UnknownRank());
  if (in.rank() == 0) return Bad("input is a scalar");
  if (!known || axis.size() != 1) return ops::One(dtype, ops::UnknownDims(in.rank() - 1));
  FLOE_ASSIGN_OR_RETURN(const int reduced, NormalizeAxis(axis[0], in.rank()));
  if (in.dim(reduced) == Dim(0))
    return Bad(absl::StrCat("axis ", reduced, " of ", in.ToString(), " is empty"));
  SymShape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (i != reduced) out.push_back(in.dim(i));
  }
  return ops::One(dtype, std::move(out));
}

OpDef Arg(const char* types) {
  return {.infer = InferArg, .rows = ReduceRows, .shape_inputs = 2, .input_types = types};
}
const ops::Family kArgMax({"ArgMax"}, Arg("T U"));  // the axis may be an int16
const ops::Family kArgMin({"ArgMin"}, Arg("T i"));

}  // namespace
}  // namespace floe
