// Ops that compute each output element from the elements at its place (with broadcasting).
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace {

absl::StatusOr<Types> InferBroadcast(const InferContext& c) {
  if (c.dtype(0) != c.dtype(1)) {
    return Bad(
        absl::StrCat("inputs have types ", DTypeName(c.dtype(0)), " and ", DTypeName(c.dtype(1))));
  }
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

absl::StatusOr<Types> InferTest(const InferContext& c) {
  return ops::One(DType::kBool, c.shape(0));
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

OpDef Unary(const std::string& name, std::vector<std::string> tensorflow = {}) {
  tensorflow.push_back(name);
  return {.name = name,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferSame,
          .rows = RowsElementwise,
          .time_major = ops::TimeMajorElementwise,
          .in_place = 1,
          .tensorflow = tensorflow};
}

OpDef Binary(const std::string& name, std::vector<std::string> tensorflow = {}) {
  tensorflow.push_back(name);
  return {.name = name,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferBroadcast,
          .rows = RowsElementwise,
          .time_major = ops::TimeMajorElementwise,
          .in_place = 3,
          .tensorflow = tensorflow};
}

OpDef Compare(const std::string& name) {
  OpDef def = Binary(name);
  def.infer = InferCompare;
  def.in_place = 0;
  return def;
}

OpDef Equality(const std::string& name) {
  OpDef def = Compare(name);
  def.infer = InferEqual;
  return def;
}

OpDef Test(const std::string& name) {
  OpDef def = Unary(name);
  def.infer = InferTest;
  def.in_place = 0;
  return def;
}

OpDef ComplexPart(const std::string& name) {
  OpDef def = Unary(name);
  def.infer = InferComplexPart;
  def.in_place = 0;
  return def;
}

OpDef WithValues(OpDef def, ValueRule rule) {
  def.values = rule;
  return def;
}

const OpRegistrar kUnary[] = {
    OpRegistrar(Unary("Relu")),
    OpRegistrar(Unary("Relu6")),
    OpRegistrar(Unary("Elu")),
    OpRegistrar(Unary("Selu")),
    OpRegistrar(Unary("LeakyRelu")),
    OpRegistrar(Unary("Sigmoid")),
    OpRegistrar(Unary("Tanh")),
    OpRegistrar(Unary("Exp")),
    OpRegistrar(Unary("Expm1")),
    OpRegistrar(Unary("Log")),
    OpRegistrar(Unary("Log1p")),
    OpRegistrar(Unary("Sqrt")),
    OpRegistrar(Unary("Rsqrt")),
    OpRegistrar(Unary("Square")),
    OpRegistrar(Unary("Abs")),
    OpRegistrar(Unary("Sign")),
    OpRegistrar(Unary("Softplus")),
    OpRegistrar(Unary("Softsign")),
    OpRegistrar(Unary("Erf")),
    OpRegistrar(Unary("Erfc")),
    OpRegistrar(Unary("Floor")),
    OpRegistrar(Unary("Ceil")),
    OpRegistrar(Unary("Round")),
    OpRegistrar(Unary("Rint")),
    OpRegistrar(Unary("Sin")),
    OpRegistrar(Unary("Cos")),
    OpRegistrar(Unary("Tan")),
    OpRegistrar(Unary("Asin")),
    OpRegistrar(Unary("Acos")),
    OpRegistrar(Unary("Atan")),
    OpRegistrar(Unary("Sinh")),
    OpRegistrar(Unary("Cosh")),
    OpRegistrar(Unary("Asinh")),
    OpRegistrar(Unary("Acosh")),
    OpRegistrar(Unary("Atanh")),
    OpRegistrar(Unary("Reciprocal", {"Inv"})),
    OpRegistrar(Unary("LogicalNot"), "bool"),
    OpRegistrar(Unary("Invert")),
    OpRegistrar(Unary("Conj")),
    OpRegistrar(WithValues(Unary("Neg"), ValueRule::kLinear)),
    OpRegistrar(Test("IsNan")),
    OpRegistrar(Test("IsInf")),
    OpRegistrar(Test("IsFinite")),
    OpRegistrar(ComplexPart("ComplexAbs")),
    OpRegistrar(ComplexPart("Real")),
    OpRegistrar(ComplexPart("Imag")),
};

const OpRegistrar kSpecialFunctions[] = {
    OpRegistrar(Unary("Lgamma")),     OpRegistrar(Unary("Digamma")),
    OpRegistrar(Unary("Ndtri")),      OpRegistrar(Unary("BesselI0")),
    OpRegistrar(Unary("BesselI0e")),  OpRegistrar(Unary("BesselI1")),
    OpRegistrar(Unary("BesselI1e")),  OpRegistrar(Unary("BesselJ0")),
    OpRegistrar(Unary("BesselJ1")),   OpRegistrar(Unary("BesselK0")),
    OpRegistrar(Unary("BesselK0e")),  OpRegistrar(Unary("BesselK1")),
    OpRegistrar(Unary("BesselK1e")),  OpRegistrar(Unary("BesselY0")),
    OpRegistrar(Unary("BesselY1")),   OpRegistrar(Binary("Igamma")),
    OpRegistrar(Binary("Igammac")),   OpRegistrar(Binary("Zeta")),
    OpRegistrar(Binary("Polygamma")), OpRegistrar(Unary("Expint")),
    OpRegistrar(Unary("Dawsn")),      OpRegistrar(Unary("FresnelCos")),
    OpRegistrar(Unary("FresnelSin")), OpRegistrar(Unary("Spence")),
};

// Inputs are of one shape, or scalars.
absl::StatusOr<Types> InferBetainc(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
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
const OpRegistrar kBetainc({.name = "Betainc",
                            .min_inputs = 3,
                            .max_inputs = 3,
                            .infer = InferBetainc,
                            .rows = RowsElementwise,
                            .time_major = ops::TimeMajorElementwise,
                            .tensorflow = {"Betainc"}});

const OpRegistrar kBinary[] = {
    OpRegistrar(WithValues(Binary("Add", {"AddV2"}), ValueRule::kLinear), "T T"),
    OpRegistrar(WithValues(Binary("Sub"), ValueRule::kLinear), "T T"),
    OpRegistrar(WithValues(Binary("Mul"), ValueRule::kProduct), "T T"),
    OpRegistrar(Binary("RealDiv", {"Div"}), "T T"),
    OpRegistrar(Binary("DivNoNan"), "T T"),
    OpRegistrar(Binary("Maximum"), "T T"),
    OpRegistrar(Binary("Minimum"), "T T"),
    OpRegistrar(Binary("Pow"), "T T"),
    OpRegistrar(Binary("SquaredDifference"), "T T"),
    OpRegistrar(Binary("FloorDiv"), "T T"),
    OpRegistrar(Binary("FloorMod"), "T T"),
    OpRegistrar(Binary("TruncateDiv"), "T T"),
    OpRegistrar(Binary("TruncateMod", {"Mod"}), "T T"),
    OpRegistrar(Binary("Atan2"), "T T"),
    OpRegistrar(Binary("Xdivy"), "T T"),
    OpRegistrar(Binary("Xlogy"), "T T"),
    OpRegistrar(Binary("Xlog1py"), "T T"),
    OpRegistrar(Binary("BitwiseAnd"), "T T"),
    OpRegistrar(Binary("BitwiseOr"), "T T"),
    OpRegistrar(Binary("BitwiseXor"), "T T"),
    OpRegistrar(Binary("LeftShift"), "T T"),
    OpRegistrar(Binary("RightShift"), "T T"),
    OpRegistrar(Binary("LogicalAnd"), "bool bool"),
    OpRegistrar(Binary("LogicalOr"), "bool bool"),
    OpRegistrar(Equality("Equal"), "T T"),
    OpRegistrar(Equality("NotEqual"), "T T"),
    OpRegistrar(Compare("Less"), "T T"),
    OpRegistrar(Compare("LessEqual"), "T T"),
    OpRegistrar(Compare("Greater"), "T T"),
    OpRegistrar(Compare("GreaterEqual"), "T T"),
};

absl::StatusOr<Types> InferCast(const InferContext& c) {
  const DType to = ops::TypeAttr(c, "DstT", DType::kInvalid);
  if (to == DType::kInvalid) return Bad("attribute DstT is missing");
  return ops::One(to, c.shape(0));
}

const OpRegistrar kCast({.name = "Cast",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .infer = InferCast,
                         .rows = RowsElementwise,
                         .time_major = ops::TimeMajorElementwise,
                         .values = ValueRule::kLinear,
                         .tensorflow = {"Cast"}});

// Bias of the channels: dim 1 in NCHW, the last one otherwise.
absl::StatusOr<Types> InferBiasAdd(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 1, 1));
  if (!c.shape(0).rank_known()) return Types{c.inputs[0].type};
  const int rank = c.shape(0).rank();
  if (rank < 2)
    return Bad(
        absl::StrCat("input has shape ", c.shape(0).ToString(), ", expected rank 2 or more"));
  const int channel = c.attrs().String("data_format", "NHWC") == "NCHW" ? 1 : rank - 1;
  SymShape shape = c.shape(0);
  if (ops::RankOf(c, 1) == 1 && c.shape(1).dim(0).known()) {
    const Dim channels = c.shape(1).dim(0);
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
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .infer = InferBiasAdd,
                            .rows = RowsOfInput0,
                            .in_place = 1,
                            .input_types = "T T",
                            .tensorflow = {"BiasAdd", "BiasAddV1"}});

absl::StatusOr<Types> InferAddN(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c));
  SymShape shape = c.shape(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    FLOE_ASSIGN_OR_RETURN(shape, ops::Merge(shape, c.shape(i)));
  }
  return ops::One(c.dtype(0), std::move(shape));
}

const OpRegistrar kAddN({.name = "AddN",
                         .min_inputs = 1,
                         .max_inputs = -1,
                         .infer = InferAddN,
                         .rows = RowsElementwise,
                         .time_major = ops::TimeMajorElementwise,
                         .values = ValueRule::kLinear,
                         .in_place = 1,
                         .input_types = "T*",
                         .tensorflow = {"AddN", "AccumulateNV2"}});

absl::StatusOr<Types> InferSelectV2(const InferContext& c) {
  if (c.dtype(0) != DType::kBool)
    return Bad(absl::StrCat("condition has type ", DTypeName(c.dtype(0)), ", expected bool"));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, 1));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(1), c.shape(2)));
  FLOE_ASSIGN_OR_RETURN(shape, BroadcastShapes(c.shape(0), shape));
  return ops::One(c.dtype(1), std::move(shape));
}

// The condition has the shape of the values, or is a scalar, or a vector that picks along dim 0.
absl::StatusOr<Types> InferSelect(const InferContext& c) {
  if (c.dtype(0) != DType::kBool)
    return Bad(absl::StrCat("condition has type ", DTypeName(c.dtype(0)), ", expected bool"));
  FLOE_RETURN_IF_ERROR(ops::ExpectOneType(c, 1));
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

const OpRegistrar kSelect[] = {
    OpRegistrar({.name = "SelectV2",
                 .min_inputs = 3,
                 .max_inputs = 3,
                 .infer = InferSelectV2,
                 .rows = RowsElementwise,
                 .time_major = ops::TimeMajorElementwise,
                 .input_types = "bool T T",
                 .tensorflow = {"SelectV2"}}),
    OpRegistrar({.name = "Select",
                 .min_inputs = 3,
                 .max_inputs = 3,
                 .infer = InferSelect,
                 .rows = SelectRows,
                 .input_types = "bool T T",
                 .tensorflow = {"Select"}}),
};

}  // namespace
}  // namespace floe
