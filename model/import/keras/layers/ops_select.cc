// Clip, where, cast.
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue ClipFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = TensorAt(c, 0, {"x", "t"});
  const Operand low = OperandAt(c, 1, {"clip_value_min"}),
                high = OperandAt(c, 2, {"clip_value_max"});
  if (!b.ok()) return {};
  if (IsKeras3(c) && b.dtype(x) == DType::kBool) x = Cast(b, x, DType::kInt32);
  const auto bound = [&](const Operand& operand, const char* option, double none) {
    if (operand.present()) return Cast(b, operand.value, b.dtype(x));
    if (!IsKeras3(c)) c.Fail("it needs two bounds");
    return Scalar(b, b.dtype(x), NumberOption(c, {option}, none));
  };
  const ValueRef least = bound(low, "x_min", 0), most = bound(high, "x_max", 0);
  return b.Op("Minimum", {b.Op("Maximum", {x, least}), most});
}

// Where a condition is true: in Keras 3 a vector for each axis, in TensorFlow a matrix.
KValue IndicesOf(LayerContext& c, ValueRef condition) {
  GraphBuilder& b = c.b;
  const int rank = Rank(b, condition);
  const ValueRef at = b.Op("Where", {condition});
  if (!IsKeras3(c)) return at;
  std::vector<KValue> out;
  out.reserve(rank);
  for (int k = 0; k < rank; ++k) out.emplace_back(At(b, Cast(b, at, DType::kInt32), 1, k));
  return out;
}

KValue WhereFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef condition = Cast(b, TensorAt(c, 0, {"condition"}), DType::kBool);
  const Operand x = OperandAt(c, 1, {"x1", "x"}), y = OperandAt(c, 2, {"x2", "y"});
  if (x.present() != y.present()) c.Fail("one of two values is missing");
  if (!b.ok()) return {};
  if (!x.present()) return IndicesOf(c, condition);
  const std::vector<ValueRef> values = InOneType(c, {x, y});
  return b.Op("SelectV2", {condition, values[0], values[1]});
}

KValue Cast(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  const std::optional<DType> dtype = TypeOption(c, {"dtype"});
  if (!dtype.has_value()) c.Fail("no type");
  return c.b.ok() ? KValue(Cast(c.b, x, *dtype)) : KValue();
}

const OperationRegistrar kSelect[] = {{"Clip", {"clip_by_value"}, ClipFunction},
                                      {"Where", {"where"}, WhereFunction},
                                      {"Cast", {"cast"}, Cast}};

}  // namespace
}  // namespace floe::keras
