#include "model/import/keras/op_values.h"

#include <cfloat>
#include <vector>

namespace floe::keras {

ValueRef WithNegativeZeros(GraphBuilder& b, ValueRef x) {
  if (!b.ok() || !b.Floating(x)) return x;
  const DType dtype = ResultType({{b.dtype(x)}, {DType::kFloat32}});
  x = b.Cast(x, dtype);
  const ValueRef bits = b.Op("Bitcast", {b.Cast(x, DType::kFloat32)},
                             {{"T", DType::kFloat32}, {"type", DType::kInt32}});
  const ValueRef negative =
      b.Op("LogicalAnd", {b.Op("Equal", {x, b.Scalar(dtype, 0)}), b.Op("Less", {bits, b.Int(0)})});
  const double least = dtype == DType::kFloat64 ? DBL_MIN : FLT_MIN;
  return b.Op("SelectV2", {negative, b.Scalar(dtype, -least), x});
}

bool IsComputed(LayerContext& c, int i, const char* name) {
  const KValue& at = c.Arg(i, name);
  const KValue& value = at.is_none() ? c.Arg(-1, name) : at;
  return value.is_tensor() || !value.items.empty();
}

ValueRef VectorAt(LayerContext& c, int i, const char* name) {
  GraphBuilder& b = c.b;
  if (IsKeras3(c) && !c.config.At(name).is_null()) return b.Ints(IntOptions(c, {name}));
  const std::vector<Operand> parts = OperandsAt(c, i, {name});
  if (!b.ok()) return {};
  if (parts.size() == 1) {
    const ValueRef one = b.Cast(parts[0].value, DType::kInt32);
    return b.rank(one) == 0 ? b.ExpandDims(one, 0) : one;
  }
  std::vector<ValueRef> values;
  values.reserve(parts.size());
  for (const Operand& part : parts) values.push_back(b.Cast(part.value, DType::kInt32));
  return b.Pack(values, 0);
}

}  // namespace floe::keras
