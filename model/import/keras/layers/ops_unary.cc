// Functions of each element of one tensor.
#include <cmath>
#include <map>
#include <string>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

enum class Kind {
  kAny,       // in the type of x
  kFloating,  // Keras computes whole numbers in float32
  kCounting,  // bools count as int32
};

struct UnaryOp {
  const char* op;
  Kind kind;
};

const std::map<std::string, UnaryOp>& Unaries() {
  static const std::map<std::string, UnaryOp> ops{{"Negative", {"Neg", Kind::kAny}},
                                                  {"Square", {"Square", Kind::kCounting}},
                                                  {"Exp", {"Exp", Kind::kFloating}},
                                                  {"Expm1", {"Expm1", Kind::kFloating}},
                                                  {"Log", {"Log", Kind::kFloating}},
                                                  {"Log1p", {"Log1p", Kind::kFloating}},
                                                  {"Sqrt", {"Sqrt", Kind::kFloating}},
                                                  {"Rsqrt", {"Rsqrt", Kind::kAny}},
                                                  {"Sin", {"Sin", Kind::kFloating}},
                                                  {"Cos", {"Cos", Kind::kFloating}},
                                                  {"Tan", {"Tan", Kind::kFloating}},
                                                  {"Sinh", {"Sinh", Kind::kFloating}},
                                                  {"Cosh", {"Cosh", Kind::kFloating}},
                                                  {"Arcsin", {"Asin", Kind::kFloating}},
                                                  {"Arccos", {"Acos", Kind::kFloating}},
                                                  {"Arctan", {"Atan", Kind::kFloating}},
                                                  {"Arcsinh", {"Asinh", Kind::kFloating}},
                                                  {"Arccosh", {"Acosh", Kind::kFloating}},
                                                  {"Arctanh", {"Atanh", Kind::kFloating}},
                                                  {"Floor", {"Floor", Kind::kFloating}},
                                                  {"Ceil", {"Ceil", Kind::kFloating}},
                                                  {"Reciprocal", {"Reciprocal", Kind::kAny}},
                                                  {"Erf", {"Erf", Kind::kAny}},
                                                  {"Erfc", {"Erfc", Kind::kAny}},
                                                  {"Isnan", {"IsNan", Kind::kFloating}},
                                                  {"Isinf", {"IsInf", Kind::kFloating}},
                                                  {"Isfinite", {"IsFinite", Kind::kFloating}},
                                                  {"Identity", {"Identity", Kind::kAny}},
                                                  {"StopGradient", {"Identity", Kind::kAny}},
                                                  {"Tanh", {"Tanh", Kind::kFloating}},
                                                  {"Sigmoid", {"Sigmoid", Kind::kAny}},
                                                  {"Softplus", {"Softplus", Kind::kAny}},
                                                  {"Softsign", {"Softsign", Kind::kAny}},
                                                  {"Relu", {"Relu", Kind::kAny}},
                                                  {"Relu6", {"Relu6", Kind::kAny}},
                                                  {"Selu", {"Selu", Kind::kAny}}};
  return ops;
}

KValue Unary(LayerContext& c) {
  const auto found = Unaries().find(OperationName(c));
  if (found == Unaries().end()) return c.Refuse("this function");
  GraphBuilder& b = c.b;
  ValueRef x = FirstTensor(c);
  if (!b.ok()) return {};
  if (IsKeras3(c) && found->second.kind == Kind::kFloating)
    x = Cast(b, x, FloatingType(b.dtype(x)));
  if (found->second.kind == Kind::kCounting && b.dtype(x) == DType::kBool)
    x = Cast(b, x, DType::kInt32);
  return b.Op(found->second.op, {x});
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

bool RegisterUnaries() {
  for (const auto& [name, unary] : Unaries()) {
    const OperationRegistrar registered(name.c_str(), {}, Unary);
  }
  return true;
}
const bool kRegistered = RegisterUnaries();

const OperationRegistrar kUnaries[] = {
    {"Absolute", {"math.abs", "abs"}, Absolute},
    {"Abs", {}, Absolute},
    {"Negative", {"math.negative", "__operators__.neg"}, Unary},
    {"Square", {"math.square", "square"}, Unary},
    {"Sign", {"math.sign"}, Sign},
    {"LogicalNot", {"math.logical_not"}, LogicalNot},
    {"Exp", {"math.exp", "exp"}, Unary},
    {"Expm1", {"math.expm1"}, Unary},
    {"Log", {"math.log"}, Unary},
    {"Log1p", {"math.log1p"}, Unary},
    {"Sqrt", {"math.sqrt", "sqrt"}, Unary},
    {"Rsqrt", {"math.rsqrt"}, Unary},
    {"Sin", {"math.sin"}, Unary},
    {"Cos", {"math.cos"}, Unary},
    {"Tan", {"math.tan"}, Unary},
    {"Floor", {"math.floor"}, Unary},
    {"Ceil", {"math.ceil"}, Unary},
    {"Round", {"math.round"}, Round},
    {"Reciprocal", {"math.reciprocal"}, Unary},
    {"Erf", {"math.erf"}, Unary},
    {"Tanh", {"math.tanh", "nn.tanh", "tanh"}, Unary},
    {"Sigmoid", {"math.sigmoid", "nn.sigmoid", "sigmoid"}, Unary},
    {"Softplus", {"math.softplus", "nn.softplus"}, Unary},
    {"Softsign", {"nn.softsign"}, Unary},
    {"Relu", {"nn.relu"}, Unary},
    {"Relu6", {"nn.relu6"}, Unary},
    {"Selu", {"nn.selu"}, Unary},
    {"Elu", {"nn.elu"}, EluFunction},
    {"Identity", {"identity"}, Unary},
    {"StopGradient", {"stop_gradient"}, Unary},
    {"Isnan", {"math.is_nan"}, Unary},
    {"ZerosLike", {"zeros_like"}, Like},
    {"OnesLike", {"ones_like"}, Like}};

}  // namespace
}  // namespace floe::keras
