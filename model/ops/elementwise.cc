// Ops that compute each output element from the elements at its place (with broadcasting).
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferBroadcast(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(0), c.shape(1)));
  return ops::One(c.dtype(0), std::move(shape));
}

absl::StatusOr<Types> InferCompare(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(Types types, InferBroadcast(c));
  types[0].dtype = DType::kBool;
  return types;
}

// With incompatible_shape_error off, shapes that do not broadcast are unequal as a whole.
absl::StatusOr<Types> InferEqual(const InferContext& c) {
  const auto joined = BroadcastShapes(c.shape(0), c.shape(1));
  if (!joined.ok() && c.dtype(0) == c.dtype(1) && c.shape(0).concrete() && c.shape(1).concrete() &&
      !c.attrs().Bool("incompatible_shape_error", true))
    return ops::One(DType::kBool, SymShape{});
  return InferCompare(c);
}

// complex64 -> float32, complex128 -> float64.
absl::StatusOr<Types> InferComplexPart(const InferContext& c) {
  const DType part = c.dtype(0) == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32;
  const DType wanted = ops::TypeAttr(c, "Tout", part);
  if (wanted != part)
    return Bad(absl::StrCat("attribute Tout is ", DTypeName(wanted), ", parts of ",
                            DTypeName(c.dtype(0)), " are ", DTypeName(part)));
  return ops::One(part, c.shape(0));
}

// Inputs are broadcast to the output.
OpDef Elementwise(ops::InferFunction infer, const char* types, uint64_t in_place = 0,
                  ValueRule values = ValueRule::kNone) {
  return {.infer = infer,
          .rows = RowsElementwise,
          .time_major = ops::TimeMajorElementwise,
          .values = values,
          .in_place = in_place,
          .input_types = types};
}
OpDef Unary(const char* type = "T") { return Elementwise(InferSame, type, 1); }
OpDef Binary(const char* types = "T T", ValueRule values = ValueRule::kNone) {
  return Elementwise(InferBroadcast, types, 3, values);
}

const ops::Family kUnary(
    {"Relu",      "Relu6",     "Elu",      "Selu",     "LeakyRelu", "Sigmoid",    "Tanh",
     "Exp",       "Expm1",     "Log",      "Log1p",    "Sqrt",      "Rsqrt",      "Square",
     "Abs",       "Sign",      "Softplus", "Softsign", "Erf",       "Erfc",       "Floor",
     "Ceil",      "Round",     "Rint",     "Sin",      "Cos",       "Tan",        "Asin",
     "Acos",      "Atan",      "Sinh",     "Cosh",     "Asinh",     "Acosh",      "Atanh",
     "Invert",    "Conj",      "Lgamma",   "Digamma",  "Ndtri",     "BesselI0",   "BesselI0e",
     "BesselI1",  "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0",  "BesselK0e",  "BesselK1",
     "BesselK1e", "BesselY0",  "BesselY1", "Expint",   "Dawsn",     "FresnelCos", "FresnelSin",
     "Spence"},
    Unary());
const ops::Synonyms kReciprocal({"Reciprocal", "Inv"}, Unary());
const ops::Family kLogicalNot({"LogicalNot"}, Unary("bool"));
const ops::Family kNeg({"Neg"}, Elementwise(InferSame, "T", 1, ValueRule::kLinear));
const ops::Family kTests({"IsNan", "IsInf", "IsFinite"},
                         Elementwise(ops::InferEach<DType::kBool>, "T"));
const ops::Family kComplexParts({"ComplexAbs", "Real", "Imag"}, Elementwise(InferComplexPart, "T"));

// Inputs are of one shape, or scalars.
absl::StatusOr<Types> InferBetainc(const InferContext& c) {
  SymShape shape;
  bool unknown = false;
  for (int i = 0; i < 3; ++i) {
    unknown = unknown || !c.shape(i).rank_known();
    if (ops::RankOf(c, i) <= 0) continue;
    if (shape.rank() == 0) {
      shape = c.shape(i);
    } else {
      FLOE_ASSIGN_OR_RETURN(shape, ops::Merge(shape, c.shape(i)));
    }
  }
  if (unknown && shape.rank() == 0) shape = SymShape::UnknownRank();
  return ops::One(c.dtype(0), std::move(shape));
}
const ops::Family kBetainc({"Betainc"}, Elementwise(InferBetainc, "T T T"));

const ops::Family kBinary(
    {"DivNoNan",  "Maximum",    "Minimum",     "Pow",       "SquaredDifference",
     "FloorDiv",  "FloorMod",   "TruncateDiv", "Atan2",     "Xdivy",
     "Xlogy",     "Xlog1py",    "BitwiseAnd",  "BitwiseOr", "BitwiseXor",
     "LeftShift", "RightShift", "Igamma",      "Igammac",   "Zeta",
     "Polygamma"},
    Binary());
const ops::Synonyms kRealDiv({"RealDiv", "Div"}, Binary());
const ops::Synonyms kTruncateMod({"TruncateMod", "Mod"}, Binary());
const ops::Synonyms kAdd({"Add", "AddV2"}, Binary("T T", ValueRule::kLinear));
const ops::Family kSub({"Sub"}, Binary("T T", ValueRule::kLinear));
const ops::Family kMul({"Mul"}, Binary("T T", ValueRule::kProduct));
const ops::Family kLogical({"LogicalAnd", "LogicalOr"}, Binary("bool bool"));
const ops::Family kEqual({"Equal", "NotEqual"}, Elementwise(InferEqual, "T T"));
const ops::Family kOrder({"Less", "LessEqual", "Greater", "GreaterEqual"},
                         Elementwise(InferCompare, "T T"));

absl::StatusOr<Types> InferCast(const InferContext& c) {
  const DType to = ops::TypeAttr(c, "DstT", DType::kInvalid);
  if (to == DType::kInvalid) return Bad("attribute DstT is missing");
  return ops::One(to, c.shape(0));
}

const ops::Family kCast({"Cast"}, Elementwise(InferCast, "T", 0, ValueRule::kLinear));

// Bias of the channels: dim 1 in NCHW, the last one otherwise.
absl::StatusOr<Types> InferBiasAdd(const InferContext& c) {
  if (!c.shape(0).rank_known()) return Types{c.inputs[0].type};
  const int rank = c.shape(0).rank();
  if (rank < 2)
    return Bad(
        absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected rank 2 or more"));
  const int channel = c.attrs().String("data_format", "NHWC") == "NCHW" ? 1 : rank - 1;
  SymShape shape = c.shape(0);
  if (const Dim channels = ops::DimOf(c, 1, 0); channels.known()) {
    if (ops::Differ(shape.dim(channel), channels)) {
      return Bad(absl::StrCat("bias has ", channels.ToString(), " elements, input ",
                              shape.ToString(), " has ", shape.dim(channel).ToString(),
                              " channels"));
    }
    if (!shape.dim(channel).known()) shape.set_dim(channel, channels);
  }
  return ops::One(c.dtype(0), std::move(shape));
}

const OpRegistrar kBiasAdd({.name = "BiasAdd",
                            .infer = InferBiasAdd,
                            .rows = RowsOfInput0,
                            .in_place = 1,
                            .input_types = "T T[_]",
                            .tensorflow = {"BiasAdd", "BiasAddV1"}});

absl::StatusOr<Types> InferAddN(const InferContext& c) {
  SymShape shape = c.shape(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    FLOE_ASSIGN_OR_RETURN(shape, ops::Merge(shape, c.shape(i)));
  }
  return ops::One(c.dtype(0), std::move(shape));
}

const ops::Synonyms kAddN({"AddN", "AccumulateNV2"},
                          Elementwise(InferAddN, "T*", 1, ValueRule::kLinear));

absl::StatusOr<Types> InferSelectV2(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(1), c.shape(2)));
  FLOE_ASSIGN_OR_RETURN(shape, BroadcastShapes(c.shape(0), shape));
  return ops::One(c.dtype(1), std::move(shape));
}

// The condition has the shape of the values, or is a scalar, or a vector that picks along dim 0.
absl::StatusOr<Types> InferSelect(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, ops::Merge(c.shape(1), c.shape(2)));
  const int rank = ops::RankOf(c, 0);
  if (shape.rank_known() && rank > 1) {
    FLOE_ASSIGN_OR_RETURN(shape, ops::Merge(shape, c.shape(0)));
  } else if (shape.rank_known() && rank == 1) {
    const Dim choices = c.shape(0).dim(0);
    if (shape.rank() == 0 || ops::Differ(choices, shape.dim(0)))
      return Bad(absl::StrCat("a condition of shape ", c.shape(0).ToString(), " for values ",
                              shape.ToString()));
  }
  return ops::One(c.dtype(1), std::move(shape));
}

RowMark SelectRows(const RowContext& c) {
  const SymShape& condition = c.inputs[0].type.shape;
  const SymShape& out = c.outputs[0].shape;
  const bool picks_rows =
      condition.rank_known() && condition.rank() == 1 && out.rank_known() && out.rank() > 1;
  if (!picks_rows) return RowsElementwise(c);
  // A vector of conditions lies along dim 0, not along the last dim as broadcasting would have it.
  for (RowMark mark : c.marks) {
    if (mark == RowMark::kUnknown) return mark;
  }
  if (c.marks[0] == RowMark::kConstant && c.marks[1] == RowMark::kConstant &&
      c.marks[2] == RowMark::kConstant) {
    return ops::Checked(RowMark::kConstant, c);
  }
  for (RowMark mark : c.marks) {
    if (mark != RowMark::kRows) return RowMark::kMixed;
  }
  return condition.dim(0) == out.dim(0) ? ops::Checked(RowMark::kRows, c) : RowMark::kMixed;
}

const ops::Family kSelectV2({"SelectV2"}, Elementwise(InferSelectV2, "bool T T"));
const OpRegistrar kSelect(ops::Simple("Select", InferSelect, SelectRows), "bool T T");

}  // namespace
}  // namespace floe
