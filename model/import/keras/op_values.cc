#include "model/import/keras/op_values.h"

#include <cfloat>
#include <vector>

namespace floe::keras {

ValueRef WithNegativeZeros(GraphBuilder& b, ValueRef x) {
  if (!b.ok() || !Floating(b, x)) return x;
  const DType dtype = ResultType({{b.dtype(x)}, {DType::kFloat32}});
  x = Cast(b, x, dtype);
  const ValueRef bits = b.Op("Bitcast", {Cast(b, x, DType::kFloat32)},
                             {{"T", DType::kFloat32}, {"type", DType::kInt32}});
  const ValueRef negative = b.Op(
      "LogicalAnd", {b.Op("Equal", {x, Scalar(b, dtype, 0)}), b.Op("Less", {bits, Int(b, 0)})});
  const double least = dtype == DType::kFloat64 ? DBL_MIN : FLT_MIN;
  return b.Op("SelectV2", {negative, Scalar(b, dtype, -least), x});
}

bool IsComputed(LayerContext& c, int i, const char* name) {
  const KValue& at = c.Arg(i, name);
  const KValue& value = at.is_none() ? c.Arg(-1, name) : at;
  return value.is_tensor() || !value.items.empty();
}

ValueRef VectorAt(LayerContext& c, int i, const char* name) {
  GraphBuilder& b = c.b;
  if (IsKeras3(c) && !c.config.At(name).is_null()) return Ints(b, IntOptions(c, {name}));
  const std::vector<Operand> parts = OperandsAt(c, i, {name});
  if (!b.ok()) return {};
  if (parts.size() == 1) {
    const ValueRef one = Cast(b, parts[0].value, DType::kInt32);
    return Rank(b, one) == 0 ? ExpandDims(b, one, 0) : one;
  }
  std::vector<ValueRef> values;
  values.reserve(parts.size());
  for (const Operand& part : parts) values.push_back(Cast(b, part.value, DType::kInt32));
  return Pack(b, values, 0);
}

}  // namespace floe::keras
