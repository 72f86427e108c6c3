// Quantised values: integers that stand for the numbers of a range, which goes with them as two
// float scalars. An op's last inputs are the ranges of the first ones, its last two outputs the
// range of its first.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/check_inputs.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

const TensorType kScalar{DType::kFloat32, SymShape()};

Types WithRange(DType dtype, SymShape shape) {
  return {TensorType{dtype, std::move(shape)}, kScalar, kScalar};
}

// The shape that op `plain` of floats gives for the first `inputs` inputs.
absl::StatusOr<SymShape> PlainShape(const InferContext& c, const char* plain, int inputs) {
  Node node = c.node;
  node.op = FindOp(plain);
  std::vector<ValueInfo> infos(c.inputs.begin(), c.inputs.begin() + inputs);
  for (ValueInfo& info : infos)
    if (IsQuantized(info.type.dtype)) info.type.dtype = DType::kFloat32;
  FLOE_ASSIGN_OR_RETURN(const Types types, InferChecked(node, infos));
  return types[0].shape;
}

absl::Status CheckAxis(const InferContext& c, int64_t axis) {
  if (axis < -1) return Bad(absl::StrCat("axis is ", axis, ", expected -1 or more"));
  if (c.shape(0).rank_known() && axis >= c.shape(0).rank())
    return Bad(absl::StrCat("axis is ", axis, ", input has shape ", c.shape(0).ToString()));
  return absl::OkStatus();
}

absl::Status CheckMode(const InferContext& c) {
  const std::string mode = c.attrs().String("mode", "MIN_COMBINED");
  if (mode == "MIN_COMBINED" || mode == "MIN_FIRST" || mode == "SCALED") return absl::OkStatus();
  return Bad("mode '" + mode + "' is none of MIN_COMBINED, MIN_FIRST, SCALED");
}

absl::StatusOr<Types> InferDequantize(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckMode(c));
  FLOE_RETURN_IF_ERROR(CheckAxis(c, c.attrs().Int("axis", -1)));
  FLOE_ASSIGN_OR_RETURN(const DType dtype, ops::TypeAttrOf(c, "dtype", DType::kFloat32,
                                                           {DType::kFloat32, DType::kBFloat16}));
  return ops::One(dtype, c.shape(0));
}
// Ranges along dim 0 belong to places there.
RowMark DequantizeRows(const RowContext& c) {
  if (!c.OthersConstant(1)) return RowsNever(c);
  return ops::MarkOfData(c, 0, c.node.attrs.Int("axis", -1) != 0);
}

absl::StatusOr<Types> InferQuantizeV2(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(CheckMode(c));
  const int64_t axis = c.attrs().Int("axis", -1);
  FLOE_RETURN_IF_ERROR(CheckAxis(c, axis));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "T", DType::kQUInt8,
                                        {DType::kQInt8, DType::kQUInt8, DType::kQInt32,
                                         DType::kQInt16, DType::kQUInt16}));
  Types types = WithRange(dtype, c.shape(0));
  if (axis < 0) return types;
  const Dim slices = c.shape(0).rank_known() ? c.shape(0).dim(static_cast<int>(axis)) : Dim();
  types[1].shape = types[2].shape =
      c.shape(0).rank_known() ? SymShape({slices}) : ops::UnknownDims(1);
  return types;
}

// An op of which the plain one, of floats, gives the shape, and an attribute the type.
absl::StatusOr<Types> InferAsPlain(const InferContext& c, const char* plain, const char* type) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, type, DType::kQInt32, {DType::kQInt32}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, plain, 2));
  return WithRange(dtype, std::move(shape));
}
absl::StatusOr<Types> InferConv(const InferContext& c) {
  return InferAsPlain(c, "Conv2D", "out_type");
}
absl::StatusOr<Types> InferQuantizedMatMul(const InferContext& c) {
  return InferAsPlain(c, "MatMul", "Toutput");
}
absl::StatusOr<Types> InferQuantizedBiasAdd(const InferContext& c) {
  // An attribute of the plain op, which this one does not have: channels are last.
  if (c.node.attrs.String("data_format", "NHWC") != "NHWC")
    return Bad("it has a data_format; expected none");
  return InferAsPlain(c, "BiasAdd", "out_type");
}
absl::StatusOr<Types> InferArithmetic(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "Toutput", DType::kQInt32, {DType::kQInt32}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(0), c.shape(1)));
  return WithRange(dtype, std::move(shape));
}
absl::StatusOr<Types> InferRelu(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQUInt8, {c.dtype(0)}));
  return WithRange(dtype, c.shape(0));
}
absl::StatusOr<Types> InferPool(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "MaxPool", 1));
  return WithRange(c.dtype(0), std::move(shape));
}
absl::StatusOr<Types> InferReshape(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "Reshape", 2));
  return WithRange(c.dtype(0), std::move(shape));
}
absl::StatusOr<Types> InferQuantizedResize(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "ResizeBilinear", 2));
  return WithRange(c.dtype(0), std::move(shape));
}

// axis, N values, N lows, N highs.
absl::StatusOr<Types> InferConcat(const InferContext& c) {
  if (c.num_inputs() % 3 != 1 || c.num_inputs() < 4)
    return Bad(absl::StrCat("has ", c.num_inputs(), " inputs, expected 3 for each value and one"));
  const int parts = c.num_inputs() / 3;
  if (!IsQuantized(c.dtype(1)))
    return Bad(absl::StrCat("input 1 is ", DTypeName(c.dtype(1)), ", expected a quantised type"));
  for (int i = 2; i < c.num_inputs(); ++i)
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, i <= parts ? c.dtype(1) : DType::kFloat32));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "Concat", 1 + parts));
  return WithRange(c.dtype(1), std::move(shape));
}

// t, its range; the same of mean, variance, beta, gamma.
absl::StatusOr<Types> InferQuantizedBatchNorm(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQInt32, {DType::kQInt32}));
  return WithRange(dtype, c.shape(0));
}

absl::StatusOr<Types> InferInstanceNorm(const InferContext& c) {
  return WithRange(c.dtype(0), c.shape(0));
}

absl::StatusOr<Types> InferRequantize(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQUInt8, {DType::kQUInt8}));
  return WithRange(dtype, c.shape(0));
}
absl::StatusOr<Types> InferRange(const InferContext&) { return Types{kScalar, kScalar}; }

// The range follows from all rows, or is a scalar that rows cannot share.
OpDef Quantized(const char* name, const char* types, std::vector<std::string> outputs,
                ops::InferFunction infer, uint64_t shape_inputs = 0) {
  return {.name = name,
          .output_names = std::move(outputs),
          .infer = infer,
          .rows = ops::NoRows,
          .shape_inputs = shape_inputs,
          .input_types = types};
}
const std::vector<std::string> kOutput = {"output", "output_min", "output_max"};
const std::vector<std::string> kMinOutput = {"output", "min_output", "max_output"};
const std::vector<std::string> kActivations = {"activations", "min_activations", "max_activations"};
const std::vector<std::string> kZ = {"z", "min_z", "max_z"};
// Values with their range; with a filter, with values of the same type.
constexpr char kValues[] = "T float32 float32",
               kFilter[] = "T quint8 float32 float32 float32 float32",
               kBoth[] = "T T float32 float32 float32 float32";

OpDef Concat() {
  OpDef def = Quantized("QuantizedConcat", nullptr, kOutput, InferConcat);
  def.min_inputs = 4;
  def.max_inputs = -1;
  return def;
}

const OpRegistrar kQuantized[] = {
    OpRegistrar(ops::Simple("Dequantize", InferDequantize, DequantizeRows), kValues),
    OpRegistrar(Quantized("QuantizeV2", "float32 float32 float32", kOutput, InferQuantizeV2)),
    OpRegistrar(Quantized("QuantizedConv2D", kFilter, kMinOutput, InferConv)),
    OpRegistrar(
        Quantized("QuantizedMatMul", kFilter, {"out", "min_out", "max_out"}, InferQuantizedMatMul)),
    OpRegistrar(Quantized("QuantizedBiasAdd", kBoth, {"output", "min_out", "max_out"},
                          InferQuantizedBiasAdd)),
    OpRegistrar(Quantized("QuantizedAdd", kBoth, kZ, InferArithmetic)),
    OpRegistrar(Quantized("QuantizedMul", kBoth, kZ, InferArithmetic)),
    OpRegistrar(Quantized("QuantizedRelu", kValues, kActivations, InferRelu)),
    OpRegistrar(Quantized("QuantizedRelu6", kValues, kActivations, InferRelu)),
    OpRegistrar(Quantized("QuantizedMaxPool", kValues, kMinOutput, InferPool)),
    OpRegistrar(Quantized("QuantizedAvgPool", kValues, kMinOutput, InferPool)),
    OpRegistrar(Concat()),
    OpRegistrar(Quantized("QuantizedReshape", "T i float32 float32", kOutput, InferReshape, 2)),
    OpRegistrar(Quantized("QuantizedResizeBilinear", "T int32 float32 float32",
                          {"resized_images", "out_min", "out_max"}, InferQuantizedResize, 2)),
    OpRegistrar(Quantized("QuantizedBatchNormWithGlobalNormalization",
                          "T[_,_,_,_] float32 float32 T[_] float32 float32 T[_] float32 float32 "
                          "T[_] float32 float32 T[_] float32 float32",
                          {"result", "result_min", "result_max"}, InferQuantizedBatchNorm)),
    OpRegistrar(Quantized("QuantizedInstanceNorm", "T[_,_,_,_] float32 float32",
                          {"y", "y_min", "y_max"}, InferInstanceNorm)),
    OpRegistrar(
        Quantized("Requantize", "T float32 float32 float32 float32", kOutput, InferRequantize)),
    OpRegistrar(Quantized("QuantizeDownAndShrinkRange", kValues, kOutput, InferRequantize)),
    OpRegistrar(
        Quantized("RequantizationRange", kValues, {"output_min", "output_max"}, InferRange)),
};

}  // namespace
}  // namespace floe
