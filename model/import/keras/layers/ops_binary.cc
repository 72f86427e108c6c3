// Operations on two operands: arithmetic, comparisons, logic.
#include <map>
#include <string>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

enum class Types {
  kResult,      // Keras' result type; mere numbers give way
  kStrong,      // the same with mere numbers as int32 and float32
  kFloating,    // the result type with a float
  kArithmetic,  // as kStrong, and bools count as int32
  kTruth,       // bool
};

struct BinaryOp {
  const char* op;
  Types types;
};

const std::map<std::string, BinaryOp>& Binaries() {
  static const std::map<std::string, BinaryOp> ops{
      {"Add", {"AddV2", Types::kResult}},
      {"Subtract", {"Sub", Types::kResult}},
      {"Multiply", {"Mul", Types::kResult}},
      {"Divide", {"RealDiv", Types::kFloating}},
      {"TrueDivide", {"RealDiv", Types::kFloating}},
      {"DivideNoNan", {"DivNoNan", Types::kFloating}},
      {"Maximum", {"Maximum", Types::kResult}},
      {"Minimum", {"Minimum", Types::kResult}},
      {"Power", {"Pow", Types::kResult}},
      {"FloorDivide", {"FloorDiv", Types::kResult}},
      {"Mod", {"FloorMod", Types::kArithmetic}},
      {"Equal", {"Equal", Types::kStrong}},
      {"NotEqual", {"NotEqual", Types::kStrong}},
      {"Less", {"Less", Types::kStrong}},
      {"LessEqual", {"LessEqual", Types::kStrong}},
      {"Greater", {"Greater", Types::kStrong}},
      {"GreaterEqual", {"GreaterEqual", Types::kStrong}},
      {"LogicalAnd", {"LogicalAnd", Types::kTruth}},
      {"LogicalOr", {"LogicalOr", Types::kTruth}},
      {"LogicalXor", {"NotEqual", Types::kTruth}},
      {"Arctan2", {"Atan2", Types::kFloating}},
      {"SquaredDifference", {"SquaredDifference", Types::kResult}}};
  return ops;
}

std::pair<ValueRef, ValueRef> Operands(LayerContext& c, Types types) {
  const Names first{"x1", "x", "a"}, second{"x2", "y", "b"};
  if (types == Types::kTruth) {
    const ValueRef x = TensorAt(c, 0, first), y = TensorAt(c, 1, second);
    return {Cast(c.b, x, DType::kBool), Cast(c.b, y, DType::kBool)};
  }
  Operand x = OperandAt(c, 0, first), y = OperandAt(c, 1, second);
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!c.b.ok()) return {};
  if (types == Types::kStrong || types == Types::kArithmetic) {
    x = Strong(c, x);
    y = Strong(c, y);
  }
  std::optional<OperandType> also;
  if (types == Types::kFloating) also = {DType::kFloat32, true};
  if (types == Types::kArithmetic && c.b.dtype(x.value) == DType::kBool) also = {DType::kInt32};
  const std::vector<ValueRef> both = InOneType(c, {x, y}, also);
  return {both[0], both[1]};
}

KValue Binary(LayerContext& c) {
  const auto op = Binaries().find(OperationName(c));
  if (op == Binaries().end()) return c.Refuse("this function");
  GraphBuilder& b = c.b;
  auto [x, y] = Operands(c, op->second.types);
  if (!b.ok()) return {};
  // TensorFlow's own division of whole numbers is one of floats.
  if (op->second.types == Types::kFloating && !Floating(b, x)) {
    const bool wide = DTypeSize(b.dtype(x)) > 2;
    const DType to = wide ? DType::kFloat64 : DType::kFloat32;
    return b.Op(op->second.op, {Cast(b, x, to), Cast(b, y, to)});
  }
  return b.Op(op->second.op, {x, y});
}

const OperationRegistrar kBinaries[] = {
    {"Add", {"__operators__.add", "math.add", "add"}, Binary},
    {"Subtract", {"math.subtract", "subtract", "sub", "__operators__.sub"}, Binary},
    {"Multiply", {"math.multiply", "multiply", "mul", "__operators__.mul"}, Binary},
    {"Divide",
     {"math.divide", "math.truediv", "divide", "truediv", "__operators__.truediv"},
     Binary},
    {"TrueDivide", {}, Binary},
    {"DivideNoNan", {"math.divide_no_nan"}, Binary},
    {"Maximum", {"math.maximum", "maximum"}, Binary},
    {"Minimum", {"math.minimum", "minimum"}, Binary},
    {"Power", {"math.pow", "pow", "__operators__.pow"}, Binary},
    {"FloorDivide", {"__operators__.floordiv", "math.floordiv", "floordiv", "floor_div"}, Binary},
    {"Mod", {"math.mod", "math.floormod", "__operators__.mod"}, Binary},
    {"Equal", {"math.equal", "equal", "__operators__.eq", "__operators__.__eq__"}, Binary},
    {"NotEqual",
     {"math.not_equal", "not_equal", "__operators__.ne", "__operators__.__ne__"},
     Binary},
    {"Less", {"math.less", "less"}, Binary},
    {"LessEqual", {"math.less_equal", "less_equal"}, Binary},
    {"Greater", {"math.greater", "greater"}, Binary},
    {"GreaterEqual", {"math.greater_equal", "greater_equal"}, Binary},
    {"LogicalAnd", {"math.logical_and", "logical_and"}, Binary},
    {"LogicalOr", {"math.logical_or", "logical_or"}, Binary},
    {"LogicalXor", {"math.logical_xor"}, Binary},
    {"Arctan2", {}, Binary},
    {"SquaredDifference", {"math.squared_difference", "squared_difference"}, Binary}};

}  // namespace
}  // namespace floe::keras
