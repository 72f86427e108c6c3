// Arithmetic, comparisons, functions of elements and reductions among the operations.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

// ---- two operands ----

const std::map<std::string, const char*>& Binaries() {
  static const std::map<std::string, const char*> ops{{"Add", "AddV2"},
                                                      {"Subtract", "Sub"},
                                                      {"Multiply", "Mul"},
                                                      {"Maximum", "Maximum"},
                                                      {"Minimum", "Minimum"},
                                                      {"Power", "Pow"},
                                                      {"FloorDivide", "FloorDiv"},
                                                      {"Mod", "FloorMod"},
                                                      {"Equal", "Equal"},
                                                      {"NotEqual", "NotEqual"},
                                                      {"Less", "Less"},
                                                      {"LessEqual", "LessEqual"},
                                                      {"Greater", "Greater"},
                                                      {"GreaterEqual", "GreaterEqual"},
                                                      {"LogicalAnd", "LogicalAnd"},
                                                      {"LogicalOr", "LogicalOr"},
                                                      {"Arctan2", "Atan2"},
                                                      {"SquaredDifference", "SquaredDifference"}};
  return ops;
}

// Keras 2's function -> class name of keras.ops.
std::string ClassOf(const LayerContext& c) {
  static const std::map<std::string, std::string> names{
      {"add", "Add"},
      {"subtract", "Subtract"},
      {"sub", "Subtract"},
      {"multiply", "Multiply"},
      {"mul", "Multiply"},
      {"maximum", "Maximum"},
      {"minimum", "Minimum"},
      {"pow", "Power"},
      {"floordiv", "FloorDivide"},
      {"mod", "Mod"},
      {"floormod", "Mod"},
      {"equal", "Equal"},
      {"not_equal", "NotEqual"},
      {"less", "Less"},
      {"less_equal", "LessEqual"},
      {"greater", "Greater"},
      {"greater_equal", "GreaterEqual"},
      {"logical_and", "LogicalAnd"},
      {"logical_or", "LogicalOr"},
      {"__eq__", "Equal"},
      {"__ne__", "NotEqual"},
      {"squared_difference", "SquaredDifference"}};
  const std::string& name = c.class_name;
  if (absl::StartsWith(name, "ops.")) return name.substr(4);
  const std::string last = name.substr(name.rfind('.') + 1);
  const auto found = names.find(last);
  return found == names.end() ? last : found->second;
}

KValue Binary(LayerContext& c) {
  auto [x, y] = TwoOperands(c);
  const std::string name = ClassOf(c);
  if (name == "LogicalAnd" || name == "LogicalOr") {
    x = c.b.Cast(x, DType::kBool);
    y = c.b.Cast(y, DType::kBool);
  }
  const auto op = Binaries().find(name);
  return op == Binaries().end() ? KValue() : KValue(c.b.Op(op->second, {x, y}));
}

KValue Divide(LayerContext& c) {
  auto [x, y] = TwoOperands(c);
  if (!c.b.Floating(x)) {
    x = c.b.Cast(x, DType::kFloat32);
    y = c.b.Cast(y, DType::kFloat32);
  }
  return c.b.Op("RealDiv", {x, y});
}

#define FLOE_BINARY(name, ...) \
  const OperationRegistrar k##name##Operation(#name, {__VA_ARGS__}, Binary)
FLOE_BINARY(Add, "__operators__.add", "math.add", "add");
FLOE_BINARY(Subtract, "math.subtract", "subtract", "__operators__.sub");
FLOE_BINARY(Multiply, "math.multiply", "multiply", "__operators__.mul");
FLOE_BINARY(Maximum, "math.maximum", "maximum");
FLOE_BINARY(Minimum, "math.minimum", "minimum");
FLOE_BINARY(Power, "math.pow", "pow", "__operators__.pow");
FLOE_BINARY(FloorDivide, "__operators__.floordiv", "math.floordiv");
FLOE_BINARY(Mod, "math.mod", "math.floormod", "__operators__.mod");
FLOE_BINARY(Equal, "math.equal", "equal", "__operators__.eq", "__operators__.__eq__");
FLOE_BINARY(NotEqual, "math.not_equal", "not_equal", "__operators__.ne", "__operators__.__ne__");
FLOE_BINARY(Less, "math.less", "less");
FLOE_BINARY(LessEqual, "math.less_equal", "less_equal");
FLOE_BINARY(Greater, "math.greater", "greater");
FLOE_BINARY(GreaterEqual, "math.greater_equal", "greater_equal");
FLOE_BINARY(LogicalAnd, "math.logical_and", "logical_and");
FLOE_BINARY(LogicalOr, "math.logical_or", "logical_or");
FLOE_BINARY(Arctan2, "math.atan2");
FLOE_BINARY(SquaredDifference, "math.squared_difference");
#undef FLOE_BINARY
const OperationRegistrar kDivide("Divide",
                                 {"math.divide", "math.truediv", "divide", "truediv",
                                  "__operators__.truediv"},
                                 Divide);
const OperationRegistrar kTrueDivide("TrueDivide", {}, Divide);

// ---- one operand ----

struct Unary {
  const char* op;
  bool floating;  // of integers, the function of the number as float32
};

const std::map<std::string, Unary>& Unaries() {
  static const std::map<std::string, Unary> ops{{"Absolute", {"Abs", false}},
                                                {"Abs", {"Abs", false}},
                                                {"Negative", {"Neg", false}},
                                                {"Square", {"Square", false}},
                                                {"Sign", {"Sign", false}},
                                                {"LogicalNot", {"LogicalNot", false}},
                                                {"Exp", {"Exp", true}},
                                                {"Expm1", {"Expm1", true}},
                                                {"Log", {"Log", true}},
                                                {"Log1p", {"Log1p", true}},
                                                {"Sqrt", {"Sqrt", true}},
                                                {"Rsqrt", {"Rsqrt", true}},
                                                {"Sin", {"Sin", true}},
                                                {"Cos", {"Cos", true}},
                                                {"Tan", {"Tan", true}},
                                                {"Sinh", {"Sinh", true}},
                                                {"Cosh", {"Cosh", true}},
                                                {"Arcsin", {"Asin", true}},
                                                {"Arccos", {"Acos", true}},
                                                {"Arctan", {"Atan", true}},
                                                {"Arcsinh", {"Asinh", true}},
                                                {"Arccosh", {"Acosh", true}},
                                                {"Arctanh", {"Atanh", true}},
                                                {"Floor", {"Floor", true}},
                                                {"Ceil", {"Ceil", true}},
                                                {"Round", {"Round", false}},
                                                {"Reciprocal", {"Reciprocal", true}},
                                                {"Erf", {"Erf", true}},
                                                {"Erfc", {"Erfc", true}},
                                                {"Isnan", {"IsNan", true}},
                                                {"Isinf", {"IsInf", true}},
                                                {"Isfinite", {"IsFinite", true}},
                                                {"ZerosLike", {"ZerosLike", false}},
                                                {"OnesLike", {"OnesLike", false}},
                                                {"StopGradient", {"Identity", false}},
                                                {"Identity", {"Identity", false}},
                                                {"Tanh", {"Tanh", true}},
                                                {"Sigmoid", {"Sigmoid", true}},
                                                {"Softplus", {"Softplus", true}},
                                                {"Softsign", {"Softsign", true}},
                                                {"Relu", {"Relu", false}},
                                                {"Relu6", {"Relu6", false}},
                                                {"Elu", {"Elu", true}},
                                                {"Selu", {"Selu", true}}};
  return ops;
}

KValue One(LayerContext& c) {
  static const std::map<std::string, std::string> names{{"abs", "Abs"},
                                                        {"negative", "Negative"},
                                                        {"square", "Square"},
                                                        {"sign", "Sign"},
                                                        {"logical_not", "LogicalNot"},
                                                        {"exp", "Exp"},
                                                        {"expm1", "Expm1"},
                                                        {"log", "Log"},
                                                        {"log1p", "Log1p"},
                                                        {"sqrt", "Sqrt"},
                                                        {"rsqrt", "Rsqrt"},
                                                        {"sin", "Sin"},
                                                        {"cos", "Cos"},
                                                        {"tan", "Tan"},
                                                        {"floor", "Floor"},
                                                        {"ceil", "Ceil"},
                                                        {"round", "Round"},
                                                        {"reciprocal", "Reciprocal"},
                                                        {"erf", "Erf"},
                                                        {"tanh", "Tanh"},
                                                        {"sigmoid", "Sigmoid"},
                                                        {"softplus", "Softplus"},
                                                        {"softsign", "Softsign"},
                                                        {"relu", "Relu"},
                                                        {"relu6", "Relu6"},
                                                        {"elu", "Elu"},
                                                        {"selu", "Selu"},
                                                        {"identity", "Identity"},
                                                        {"stop_gradient", "Identity"},
                                                        {"is_nan", "Isnan"},
                                                        {"zeros_like", "ZerosLike"},
                                                        {"ones_like", "OnesLike"}};
  std::string name = c.class_name;
  if (absl::StartsWith(name, "ops.")) {
    name = name.substr(4);
  } else if (const auto known = names.find(name.substr(name.rfind('.') + 1));
             known != names.end()) {
    name = known->second;
  }
  const auto found = Unaries().find(name);
  if (found == Unaries().end()) {
    c.Fail("it is not known");
    return {};
  }
  GraphBuilder& b = c.b;
  ValueRef x = OperandValue(c, Operand(c, 0, {"x", "input", "features"}), {});
  if (found->second.floating && !b.Floating(x)) x = b.Cast(x, DType::kFloat32);
  if (name == "LogicalNot") x = b.Cast(x, DType::kBool);
  if (name == "ZerosLike") return b.Op("Sub", {x, x});
  return b.Op(found->second.op, {x});
}

bool RegisterUnaries() {
  for (const auto& [name, unary] : Unaries()) {
    const OperationRegistrar registered(name.c_str(), {}, One);
  }
  for (const char* function : {"math.abs",
                               "math.negative",
                               "math.square",
                               "math.sign",
                               "math.logical_not",
                               "math.exp",
                               "math.expm1",
                               "math.log",
                               "math.log1p",
                               "math.sqrt",
                               "math.rsqrt",
                               "math.sin",
                               "math.cos",
                               "math.tan",
                               "math.floor",
                               "math.ceil",
                               "math.round",
                               "math.reciprocal",
                               "math.erf",
                               "math.tanh",
                               "math.sigmoid",
                               "math.softplus",
                               "nn.tanh",
                               "nn.sigmoid",
                               "nn.softplus",
                               "nn.softsign",
                               "nn.relu",
                               "nn.relu6",
                               "nn.elu",
                               "nn.selu",
                               "identity",
                               "stop_gradient",
                               "math.is_nan",
                               "zeros_like",
                               "ones_like",
                               "abs",
                               "exp",
                               "sqrt",
                               "square",
                               "tanh",
                               "sigmoid",
                               "__operators__.neg"}) {
    const OperationRegistrar registered("", {function}, One);
  }
  return true;
}
const bool kUnaries = RegisterUnaries();

// ---- activations ----

KValue ActivationFunction(LayerContext& c) {
  static const std::map<std::string, std::string> names{{"Silu", "silu"},
                                                        {"HardSigmoid", "hard_sigmoid"},
                                                        {"HardSilu", "hard_silu"},
                                                        {"HardTanh", "hard_tanh"},
                                                        {"LogSigmoid", "log_sigmoid"},
                                                        {"TanhShrink", "tanh_shrink"},
                                                        {"Squareplus", "squareplus"},
                                                        {"SparsePlus", "sparse_plus"},
                                                        {"SparseSigmoid", "sparse_sigmoid"},
                                                        {"Sparsemax", "sparsemax"},
                                                        {"nn.silu", "silu"},
                                                        {"nn.swish", "silu"},
                                                        {"HardShrink", "hard_shrink"},
                                                        {"SoftShrink", "soft_shrink"}};
  std::string name = c.class_name;
  if (absl::StartsWith(name, "ops.")) name = name.substr(4);
  const auto found = names.find(name);
  return ApplyActivation(c.b, found == names.end() ? name : found->second, c.In(), false);
}

KValue Gelu(LayerContext& c) {
  const bool approximate = BoolOption(c, {"approximate"}, !c.keras2());
  return ApplyActivation(c.b, approximate ? "gelu_approximate" : "gelu", c.In(), false);
}

KValue LeakyReluFunction(LayerContext& c) {
  const Json& slope = Option(c, {"negative_slope", "alpha"});
  return c.b.Op("LeakyRelu", {c.In()}, {{"alpha", slope.is_number() ? slope.get<float>() : 0.2F}});
}

KValue SoftmaxFunction(LayerContext& c) {
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  if (axes.empty()) axes = {-1};
  const ValueRef y = SoftmaxOver(c.b, c.In(), axes);
  return absl::StrContains(c.class_name, "og") ? KValue(c.b.Op("Log", {y})) : KValue(y);
}

const OperationRegistrar kActivations[] = {{"Silu", {"nn.silu", "nn.swish"}, ActivationFunction},
                                           {"HardSigmoid", {}, ActivationFunction},
                                           {"HardSilu", {}, ActivationFunction},
                                           {"HardTanh", {}, ActivationFunction},
                                           {"LogSigmoid", {}, ActivationFunction},
                                           {"TanhShrink", {}, ActivationFunction},
                                           {"Squareplus", {}, ActivationFunction},
                                           {"SparsePlus", {}, ActivationFunction},
                                           {"SparseSigmoid", {}, ActivationFunction},
                                           {"Sparsemax", {}, ActivationFunction},
                                           {"HardShrink", {}, ActivationFunction},
                                           {"SoftShrink", {}, ActivationFunction},
                                           {"Gelu", {"nn.gelu"}, Gelu},
                                           {"LeakyRelu", {"nn.leaky_relu"}, LeakyReluFunction},
                                           {"Softmax", {"nn.softmax"}, SoftmaxFunction},
                                           {"LogSoftmax", {"nn.log_softmax"}, SoftmaxFunction}};

// ---- reductions ----

std::vector<int64_t> AllAxes(LayerContext& c, ValueRef x) {
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  const int rank = c.b.rank(x);
  for (int k = 0; axes.empty() && Option(c, {"axis"}).is_null() && k < rank; ++k) axes.push_back(k);
  for (int k = 0; axes.empty() && k < rank; ++k) axes.push_back(k);
  return axes;
}

KValue Reduce(LayerContext& c, const char* op, bool floating) {
  ValueRef x = c.In();
  if (floating && !c.b.Floating(x)) x = c.b.Cast(x, DType::kFloat32);
  return c.b.Reduce(op, x, AllAxes(c, x), BoolOption(c, {"keepdims"}, false));
}
KValue Mean(LayerContext& c) { return Reduce(c, "Mean", true); }
KValue Sum(LayerContext& c) { return Reduce(c, "Sum", false); }
KValue Max(LayerContext& c) { return Reduce(c, "Max", false); }
KValue Min(LayerContext& c) { return Reduce(c, "Min", false); }
KValue Prod(LayerContext& c) { return Reduce(c, "Prod", false); }

KValue Truth(LayerContext& c, const char* op) {
  const ValueRef x = c.In();
  return c.b.Reduce(op, c.b.Cast(x, DType::kBool), AllAxes(c, x),
                    BoolOption(c, {"keepdims"}, false));
}
KValue Any(LayerContext& c) { return Truth(c, "Any"); }
KValue All(LayerContext& c) { return Truth(c, "All"); }

KValue Variance(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = b.Floating(c.In()) ? c.In() : b.Cast(c.In(), DType::kFloat32);
  const std::vector<int64_t> axes = AllAxes(c, x);
  const ValueRef mean = b.Reduce("Mean", x, axes, true);
  return b.Reduce("Mean", b.Op("SquaredDifference", {x, mean}), axes,
                  BoolOption(c, {"keepdims"}, false));
}
KValue Deviation(LayerContext& c) {
  const KValue variance = Variance(c);
  return c.b.Op("Sqrt", {variance.tensor.value});
}

KValue LogSumExp(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const std::vector<int64_t> axes = AllAxes(c, x);
  const ValueRef most = b.Reduce("Max", x, axes, true);
  const ValueRef sum = b.Reduce("Sum", b.Op("Exp", {b.Sub(x, most)}), axes, true);
  const ValueRef y = b.Add(b.Op("Log", {sum}), most);
  return BoolOption(c, {"keepdims"}, false) ? y : b.Reduce("Sum", y, axes, false);
}

KValue ArgExtreme(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = c.In();
  const std::vector<int64_t> axes = IntOptions(c, {"axis"});
  if (axes.empty()) x = b.Reshape(x, {-1});
  const int64_t axis = axes.empty() ? 0 : axes[0];
  const bool most = absl::StrContains(c.class_name, "max");
  const bool keras3 = absl::StartsWith(c.class_name, "ops.");
  const ValueRef y = b.Op(most ? "ArgMax" : "ArgMin", {x, b.Int(axis)},
                          {{"output_type", keras3 ? DType::kInt32 : DType::kInt64}});
  return BoolOption(c, {"keepdims"}, false) ? b.ExpandDims(y, static_cast<int>(axis)) : y;
}

const OperationRegistrar kReductions[] = {{"Mean", {"math.reduce_mean", "reduce_mean"}, Mean},
                                          {"Sum", {"math.reduce_sum", "reduce_sum"}, Sum},
                                          {"Max", {"math.reduce_max", "reduce_max"}, Max},
                                          {"Amax", {}, Max},
                                          {"Min", {"math.reduce_min", "reduce_min"}, Min},
                                          {"Amin", {}, Min},
                                          {"Prod", {"math.reduce_prod", "reduce_prod"}, Prod},
                                          {"Any", {"math.reduce_any", "reduce_any"}, Any},
                                          {"All", {"math.reduce_all", "reduce_all"}, All},
                                          {"Var", {"math.reduce_variance"}, Variance},
                                          {"Std", {"math.reduce_std"}, Deviation},
                                          {"Logsumexp", {"math.reduce_logsumexp"}, LogSumExp},
                                          {"Argmax", {"math.argmax", "argmax"}, ArgExtreme},
                                          {"Argmin", {"math.argmin", "argmin"}, ArgExtreme}};

KValue Clip(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const Json &low = Option(c, {"x_min", "clip_value_min"}),
             &high = Option(c, {"x_max", "clip_value_max"});
  if (!low.is_number() || !high.is_number()) c.Fail("numbers are needed as bounds");
  if (!b.ok()) return {};
  return b.Op("Minimum", {b.Op("Maximum", {x, b.Scalar(b.dtype(x), low.get<double>())}),
                          b.Scalar(b.dtype(x), high.get<double>())});
}

KValue Where(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef condition = OperandValue(c, Operand(c, 0, {"condition"}), {});
  const KValue &first = Operand(c, 1, {"x", "x1"}), &second = Operand(c, 2, {"y", "x2"});
  const ValueRef like = first.is_tensor() ? first.tensor.value : second.tensor.value;
  return b.Op("SelectV2", {b.Cast(condition, DType::kBool), OperandValue(c, first, like),
                           OperandValue(c, second, like)});
}

KValue Cast(LayerContext& c) {
  const Json& name = Option(c, {"dtype"});
  const absl::StatusOr<DType> dtype =
      DTypeFromName(name.is_string() ? name.get<std::string>() : std::string());
  if (!dtype.ok()) {
    c.Fail(absl::StrCat("dtype ", Shown(name)));
    return {};
  }
  return c.b.Cast(c.In(), *dtype);
}

KValue MatMul(LayerContext& c) {
  GraphBuilder& b = c.b;
  const auto [x, y] = TwoOperands(c);
  const bool tx = BoolOption(c, {"transpose_a"}, false), ty = BoolOption(c, {"transpose_b"}, false);
  if (b.ok() && (b.rank(x) < 2 || b.rank(y) < 2)) c.Fail("a product of vectors");
  if (!tx && !ty) return b.MatMul(x, y);
  return b.Op("BatchMatMulV2", {x, y}, {{"adj_x", tx}, {"adj_y", ty}});
}

KValue Einsum(LayerContext& c) {
  const Json& equation = Option(c, {"subscripts", "equation"});
  std::vector<ValueRef> values;
  for (const KValue& arg : c.call.args) {
    for (const KTensor& t : Flatten(arg)) values.push_back(t.value);
  }
  if (!equation.is_string()) c.Fail("no equation");
  if (!c.b.ok()) return {};
  return c.b.Op(
      "Einsum", values,
      {{"equation", equation.get<std::string>()}, {"N", static_cast<int64_t>(values.size())}});
}

const OperationRegistrar kOthers[] = {{"Clip", {"clip_by_value"}, Clip},
                                      {"Where", {"where"}, Where},
                                      {"Cast", {"cast"}, Cast},
                                      {"Matmul", {"linalg.matmul", "matmul"}, MatMul},
                                      {"Einsum", {"einsum"}, Einsum}};

}  // namespace
}  // namespace floe::keras
