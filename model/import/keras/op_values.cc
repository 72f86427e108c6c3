#include "model/import/keras/op_values.h"

#include <vector>

namespace floe::keras {

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
