// Quantised values: integers that stand for the numbers of a range, which goes with them as two
// float scalars. An op's last inputs are the ranges of the first ones, its last two outputs the
// range of its first.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"

namespace floe {
namespace {

const TensorType kScalar{DType::kFloat32, SymShape()};

Types WithRange(DType dtype, SymShape shape) {
  return {TensorType{dtype, std::move(shape)}, kScalar, kScalar};
}

absl::Status ExpectQuantized(const InferContext& c, int first, int last) {
  for (int i = first; i < last; ++i) {
    if (!IsQuantized(c.dtype(i)))
      return Bad(
          absl::StrCat("input ", i, " is ", DTypeName(c.dtype(i)), ", expected a quantised type"));
  }
  return absl::OkStatus();
}

absl::Status ExpectFloats(const InferContext& c, int first) {
  for (int i = first; i < c.num_inputs(); ++i)
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, DType::kFloat32));
  return absl::OkStatus();
}

// The shape that op `plain` of floats gives for the first `inputs` inputs; the last of them is as
// it is (integers) where `keeps_last`.
absl::StatusOr<SymShape> PlainShape(const InferContext& c, const char* plain, int inputs,
                                    bool keeps_last = false) {
  Node node = c.node;
  node.op = FindOp(plain);
  std::vector<ValueInfo> infos(c.inputs.begin(), c.inputs.begin() + inputs);
  for (int i = 0; i < inputs - (keeps_last ? 1 : 0); ++i) infos[i].type.dtype = DType::kFloat32;
  FLOE_ASSIGN_OR_RETURN(const Types types, node.op->infer(InferContext{node, infos}));
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

absl::StatusOr<Types> InferConv(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kQUInt8));
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 2));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQInt32, {DType::kQInt32}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "Conv2D", 2));
  return WithRange(dtype, std::move(shape));
}
absl::StatusOr<Types> InferQuantizedMatMul(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, DType::kQUInt8));
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 2));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "Toutput", DType::kQInt32, {DType::kQInt32}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "MatMul", 2));
  return WithRange(dtype, std::move(shape));
}
absl::StatusOr<Types> InferQuantizedBiasAdd(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, c.dtype(0)));
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 2));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQInt32, {DType::kQInt32}));
  // An attribute of the plain op, which this one does not have: channels are last.
  if (c.node.attrs.String("data_format", "NHWC") != "NHWC")
    return Bad("it has a data_format; expected none");
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "BiasAdd", 2));
  return WithRange(dtype, std::move(shape));
}
absl::StatusOr<Types> InferArithmetic(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 2));
  FLOE_RETURN_IF_ERROR(ops::ExpectType(c, 1, c.dtype(0)));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "Toutput", DType::kQInt32, {DType::kQInt32}));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, BroadcastShapes(c.shape(0), c.shape(1)));
  return WithRange(dtype, std::move(shape));
}
absl::StatusOr<Types> InferRelu(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 1));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQUInt8, {c.dtype(0)}));
  return WithRange(dtype, c.shape(0));
}
absl::StatusOr<Types> InferPool(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 1));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "MaxPool", 1));
  return WithRange(c.dtype(0), std::move(shape));
}
absl::StatusOr<Types> InferReshape(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 2));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "Reshape", 2, true));
  return WithRange(c.dtype(0), std::move(shape));
}
absl::StatusOr<Types> InferQuantizedResize(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 2));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "ResizeBilinear", 2, true));
  return WithRange(c.dtype(0), std::move(shape));
}

// axis, N values, N lows, N highs.
absl::StatusOr<Types> InferConcat(const InferContext& c) {
  if (c.num_inputs() % 3 != 1 || c.num_inputs() < 4)
    return Bad(absl::StrCat("has ", c.num_inputs(), " inputs, expected 3 for each value and one"));
  const int parts = c.num_inputs() / 3;
  FLOE_RETURN_IF_ERROR(ExpectQuantized(c, 1, 1 + parts));
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 1 + parts));
  for (int i = 2; i <= parts; ++i) FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, c.dtype(1)));
  FLOE_ASSIGN_OR_RETURN(SymShape shape, PlainShape(c, "Concat", 1 + parts));
  return WithRange(c.dtype(1), std::move(shape));
}

// t, its range; the same of mean, variance, beta, gamma.
absl::StatusOr<Types> InferQuantizedBatchNorm(const InferContext& c) {
  for (int i = 0; i < c.num_inputs(); i += 3) {
    FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i, c.dtype(0)));
    FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, i, i == 0 ? 4 : 1));
    for (int k = 1; k < 3; ++k) FLOE_RETURN_IF_ERROR(ops::ExpectType(c, i + k, DType::kFloat32));
  }
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQInt32, {DType::kQInt32}));
  return WithRange(dtype, c.shape(0));
}

absl::StatusOr<Types> InferInstanceNorm(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ops::ExpectRank(c, 0, 4));
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 1));
  return WithRange(c.dtype(0), c.shape(0));
}

absl::StatusOr<Types> InferRequantize(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 1));
  FLOE_ASSIGN_OR_RETURN(const DType dtype,
                        ops::TypeAttrOf(c, "out_type", DType::kQUInt8, {DType::kQUInt8}));
  return WithRange(dtype, c.shape(0));
}
absl::StatusOr<Types> InferRange(const InferContext& c) {
  FLOE_RETURN_IF_ERROR(ExpectFloats(c, 1));
  return Types{kScalar, kScalar};
}

// The range follows from all rows, or is a scalar that rows cannot share.
RowMark QuantizedRows(const RowContext& c) { return ops::Checked(RowsNever(c), c); }

OpDef Quantized(const std::string& name, int inputs, std::vector<std::string> outputs,
                absl::StatusOr<Types> (*infer)(const InferContext&), uint64_t shape_inputs = 0) {
  return {.name = name,
          .min_inputs = inputs,
          .max_inputs = inputs,
          .output_names = std::move(outputs),
          .infer = infer,
          .rows = QuantizedRows,
          .shape_inputs = shape_inputs,
          .tensorflow = {name}};
}
const std::vector<std::string> kOutput = {"output", "output_min", "output_max"};
const std::vector<std::string> kMinOutput = {"output", "min_output", "max_output"};
const std::vector<std::string> kActivations = {"activations", "min_activations", "max_activations"};
const std::vector<std::string> kSum = {"z", "min_z", "max_z"};

OpDef Concat() {
  OpDef def = Quantized("QuantizedConcat", 4, kOutput, InferConcat);
  def.max_inputs = -1;
  return def;
}

const OpRegistrar kQuantized[] = {
    OpRegistrar({.name = "Dequantize",
                 .min_inputs = 3,
                 .max_inputs = 3,
                 .infer = InferDequantize,
                 .rows = DequantizeRows,
                 .input_types = "T float32 float32",
                 .tensorflow = {"Dequantize"}}),
    OpRegistrar(Quantized("QuantizeV2", 3, kOutput, InferQuantizeV2), "float32 float32 float32"),
    OpRegistrar(Quantized("QuantizedConv2D", 6, kMinOutput, InferConv)),
    OpRegistrar(
        Quantized("QuantizedMatMul", 6, {"out", "min_out", "max_out"}, InferQuantizedMatMul)),
    OpRegistrar(
        Quantized("QuantizedBiasAdd", 6, {"output", "min_out", "max_out"}, InferQuantizedBiasAdd)),
    OpRegistrar(Quantized("QuantizedAdd", 6, kSum, InferArithmetic)),
    OpRegistrar(Quantized("QuantizedMul", 6, kSum, InferArithmetic)),
    OpRegistrar(Quantized("QuantizedRelu", 3, kActivations, InferRelu)),
    OpRegistrar(Quantized("QuantizedRelu6", 3, kActivations, InferRelu)),
    OpRegistrar(Quantized("QuantizedMaxPool", 3, kMinOutput, InferPool)),
    OpRegistrar(Quantized("QuantizedAvgPool", 3, kMinOutput, InferPool)),
    OpRegistrar(Concat()),
    OpRegistrar(Quantized("QuantizedReshape", 4, kOutput, InferReshape, 2), "T i float32 float32"),
    OpRegistrar(Quantized("QuantizedResizeBilinear", 4, {"resized_images", "out_min", "out_max"},
                          InferQuantizedResize, 2),
                "T int32 float32 float32"),
    OpRegistrar(Quantized("QuantizedBatchNormWithGlobalNormalization", 15,
                          {"result", "result_min", "result_max"}, InferQuantizedBatchNorm)),
    OpRegistrar(Quantized("QuantizedInstanceNorm", 3, {"y", "y_min", "y_max"}, InferInstanceNorm)),
    OpRegistrar(Quantized("Requantize", 5, kOutput, InferRequantize)),
    OpRegistrar(Quantized("QuantizeDownAndShrinkRange", 3, kOutput, InferRequantize)),
    OpRegistrar(Quantized("RequantizationRange", 3, {"output_min", "output_max"}, InferRange)),
};

}  // namespace
}  // namespace floe
