// Functions of each element of one tensor.
#include <cmath>
#include <string>
#include <vector>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

enum class Kind {
  kAny,       // in the type of x
  kFloating,  // Keras computes whole numbers in float32
  kCounting,  // bools count as int32
};

struct UnaryFunction {
  const char* name;  // of keras.ops
  std::vector<const char*> functions;
  const char* op;
  Kind kind;
};

const std::vector<UnaryFunction> kUnaryFunctions = {
    {"Negative", {"math.negative", "__operators__.neg"}, "Neg", Kind::kAny},
    {"Square", {"math.square", "square"}, "Square", Kind::kCounting},
    {"Exp", {"math.exp", "exp"}, "Exp", Kind::kFloating},
    {"Expm1", {"math.expm1"}, "Expm1", Kind::kFloating},
    {"Log", {"math.log"}, "Log", Kind::kFloating},
    {"Log1p", {"math.log1p"}, "Log1p", Kind::kFloating},
    {"Sqrt", {"math.sqrt", "sqrt"}, "Sqrt", Kind::kFloating},
    {"Rsqrt", {"math.rsqrt"}, "Rsqrt", Kind::kAny},
    {"Sin", {"math.sin"}, "Sin", Kind::kFloating},
    {"Cos", {"math.cos"}, "Cos", Kind::kFloating},
    {"Tan", {"math.tan"}, "Tan", Kind::kFloating},
    {"Sinh", {}, "Sinh", Kind::kFloating},
    {"Cosh", {}, "Cosh", Kind::kFloating},
    {"Arcsin", {}, "Asin", Kind::kFloating},
    {"Arccos", {}, "Acos", Kind::kFloating},
    {"Arctan", {}, "Atan", Kind::kFloating},
    {"Arcsinh", {}, "Asinh", Kind::kFloating},
    {"Arccosh", {}, "Acosh", Kind::kFloating},
    {"Arctanh", {}, "Atanh", Kind::kFloating},
    {"Floor", {"math.floor"}, "Floor", Kind::kFloating},
    {"Ceil", {"math.ceil"}, "Ceil", Kind::kFloating},
    {"Reciprocal", {"math.reciprocal"}, "Reciprocal", Kind::kAny},
    {"Erf", {"math.erf"}, "Erf", Kind::kAny},
    {"Erfc", {}, "Erfc", Kind::kAny},
    {"Isnan", {"math.is_nan"}, "IsNan", Kind::kFloating},
    {"Isinf", {}, "IsInf", Kind::kFloating},
    {"Isfinite", {}, "IsFinite", Kind::kFloating},
    {"Identity", {"identity"}, "Identity", Kind::kAny},
    {"StopGradient", {"stop_gradient"}, "Identity", Kind::kAny},
    {"Tanh", {"math.tanh", "nn.tanh", "tanh"}, "Tanh", Kind::kFloating},
    {"Sigmoid", {"math.sigmoid", "nn.sigmoid", "sigmoid"}, "Sigmoid", Kind::kAny},
    {"Softplus", {"math.softplus", "nn.softplus"}, "Softplus", Kind::kAny},
    {"Softsign", {"nn.softsign"}, "Softsign", Kind::kAny},
    {"Relu", {"nn.relu"}, "Relu", Kind::kAny},
    {"Relu6", {"nn.relu6"}, "Relu6", Kind::kAny},
    {"Selu", {"nn.selu"}, "Selu", Kind::kAny},
};

KValue Unary(LayerContext& c) {
  const UnaryFunction& function = FunctionOf(c, kUnaryFunctions);
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  if (IsKeras3(c) && function.kind == Kind::kFloating) x = Cast(b, x, FloatingType(b.dtype(x)));
  if (function.kind == Kind::kCounting && b.dtype(x) == DType::kBool) x = Cast(b, x, DType::kInt32);
  return b.Op(function.op, {x});
}

KValue Absolute(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const DType dtype = b.dtype(x);
  const bool positive = dtype == DType::kBool || dtype == DType::kUInt8 ||
                        dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
                        dtype == DType::kUInt64;
  return positive ? x : b.Op("Abs", {x});
}

KValue Sign(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const DType dtype = b.dtype(x);
  if (dtype != DType::kUInt8 && dtype != DType::kUInt16 && dtype != DType::kUInt32)
    return b.Op("Sign", {x});
  return Cast(b, b.Op("Sign", {Cast(b, x, DType::kInt32)}), dtype);
}

KValue LogicalNot(LayerContext& c) {
  return c.b.Op("LogicalNot", {Cast(c.b, FirstTensor(c), DType::kBool)});
}

KValue Round(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const int64_t decimals = IntOption(c, {"decimals"}, 0);
  if (!b.ok() || decimals == 0) return b.Op("Round", {x});
  if (!Floating(b, x) && decimals > 0) return x;
  const double factor = std::pow(10.0, static_cast<double>(decimals));
  const DType dtype = FloatingType(b.dtype(x));
  const ValueRef scaled = b.Op("Round", {Mul(b, Cast(b, x, dtype), factor)});
  return Cast(b, b.Op("RealDiv", {scaled, Scalar(b, dtype, factor)}), b.dtype(x));
}

KValue EluFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c), y = b.Op("Elu", {x});
  const double alpha = NumberOption(c, {"alpha"}, 1);
  if (!b.ok() || alpha == 1) return y;
  return b.Op("SelectV2", {b.Op("Greater", {x, Scalar(b, b.dtype(x), 0)}), x, Mul(b, y, alpha)});
}

// Zeros or ones in the shape of x, whatever x has.
KValue Like(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  BoolOption(c, {"optimize"}, true);  // how TensorFlow finds the shape
  const DType dtype = TypeOption(c, {"dtype"}).value_or(b.dtype(x));
  const char* const op = OperationName(c) == "ZerosLike" ? "ZerosLike" : "OnesLike";
  return b.Op(op, {Cast(b, x, dtype)});
}

const bool kRegistered = RegisterFunctions(kUnaryFunctions, Unary);

const OperationRegistrar kUnaries[] = {{"Absolute", {"math.abs", "abs"}, Absolute},
                                       {"Abs", {}, Absolute},
                                       {"Sign", {"math.sign"}, Sign},
                                       {"LogicalNot", {"math.logical_not"}, LogicalNot},
                                       {"Round", {"math.round"}, Round},
                                       {"Elu", {"nn.elu"}, EluFunction},
                                       {"ZerosLike", {"zeros_like"}, Like},
                                       {"OnesLike", {"ones_like"}, Like}};

}  // namespace
}  // namespace floe::keras
