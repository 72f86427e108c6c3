// Operations on two operands: arithmetic, comparisons, logic.
#include <utility>
#include <vector>

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

struct BinaryFunction {
  const char* name;  // of keras.ops
  std::vector<const char*> functions;
  const char* op;
  Types types;
};

const std::vector<BinaryFunction> kBinaryFunctions = {
    {"Add", {"__operators__.add", "math.add", "add"}, "AddV2", Types::kResult},
    {"Subtract", {"math.subtract", "subtract", "sub", "__operators__.sub"}, "Sub", Types::kResult},
    {"Multiply", {"math.multiply", "multiply", "mul", "__operators__.mul"}, "Mul", Types::kResult},
    {"Divide",
     {"math.divide", "math.truediv", "divide", "truediv", "__operators__.truediv"},
     "RealDiv",
     Types::kFloating},
    {"TrueDivide", {}, "RealDiv", Types::kFloating},
    {"DivideNoNan", {"math.divide_no_nan"}, "DivNoNan", Types::kFloating},
    {"Maximum", {"math.maximum", "maximum"}, "Maximum", Types::kResult},
    {"Minimum", {"math.minimum", "minimum"}, "Minimum", Types::kResult},
    {"Power", {"math.pow", "pow", "__operators__.pow"}, "Pow", Types::kResult},
    {"FloorDivide",
     {"__operators__.floordiv", "math.floordiv", "floordiv", "floor_div"},
     "FloorDiv",
     Types::kResult},
    {"Mod", {"math.mod", "math.floormod", "__operators__.mod"}, "FloorMod", Types::kArithmetic},
    {"Equal",
     {"math.equal", "equal", "__operators__.eq", "__operators__.__eq__"},
     "Equal",
     Types::kStrong},
    {"NotEqual",
     {"math.not_equal", "not_equal", "__operators__.ne", "__operators__.__ne__"},
     "NotEqual",
     Types::kStrong},
    {"Less", {"math.less", "less"}, "Less", Types::kStrong},
    {"LessEqual", {"math.less_equal", "less_equal"}, "LessEqual", Types::kStrong},
    {"Greater", {"math.greater", "greater"}, "Greater", Types::kStrong},
    {"GreaterEqual", {"math.greater_equal", "greater_equal"}, "GreaterEqual", Types::kStrong},
    {"LogicalAnd", {"math.logical_and", "logical_and"}, "LogicalAnd", Types::kTruth},
    {"LogicalOr", {"math.logical_or", "logical_or"}, "LogicalOr", Types::kTruth},
    {"LogicalXor", {"math.logical_xor"}, "NotEqual", Types::kTruth},
    {"Arctan2", {}, "Atan2", Types::kFloating},
    {"SquaredDifference",
     {"math.squared_difference", "squared_difference"},
     "SquaredDifference",
     Types::kResult},
};

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
  const BinaryFunction& function = FunctionOf(c, kBinaryFunctions);
  GraphBuilder& b = c.b;
  auto [x, y] = Operands(c, function.types);
  if (!b.ok()) return {};
  // TensorFlow's own division of whole numbers is one of floats.
  if (function.types == Types::kFloating && !Floating(b, x)) {
    const bool wide = DTypeSize(b.dtype(x)) > 2;
    const DType to = wide ? DType::kFloat64 : DType::kFloat32;
    return b.Op(function.op, {Cast(b, x, to), Cast(b, y, to)});
  }
  return b.Op(function.op, {x, y});
}

const bool kRegistered = RegisterFunctions(kBinaryFunctions, Binary);

}  // namespace
}  // namespace floe::keras
