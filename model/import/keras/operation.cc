#include "model/import/keras/operation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::keras {
namespace {

std::map<std::string, LayerRule>& OperationFunctions() {
  static std::map<std::string, LayerRule> functions;
  return functions;
}

const Json kNone;

// bool < integers < floating, wider ones later.
int Order(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 0;
    case DType::kUInt8:
    case DType::kInt8:
      return 1;
    case DType::kInt16:
    case DType::kUInt16:
      return 2;
    case DType::kInt32:
    case DType::kUInt32:
      return 3;
    case DType::kInt64:
    case DType::kUInt64:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 5;
    case DType::kFloat32:
      return 6;
    case DType::kFloat64:
      return 7;
    default:
      return -1;
  }
}

}  // namespace

OperationRegistrar::OperationRegistrar(const char* op, std::initializer_list<const char*> functions,
                                       LayerRule rule) {
  if (*op != '\0') {
    const std::string name = absl::StrCat("ops.", op);
    const LayerRegistrar registered({name.c_str()}, rule);
  }
  for (const char* function : functions) OperationFunctions()[function] = rule;
}

LayerRule FindFunction(const std::string& function) {
  const std::string old = "compat.v1.";
  const bool is_old = function.compare(0, old.size(), old) == 0;
  const auto found = OperationFunctions().find(is_old ? function.substr(old.size()) : function);
  return found == OperationFunctions().end() ? nullptr : found->second;
}

const Json& Option(const LayerContext& c, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (c.config.Has(name)) return c.config.At(name);
    const KValue& value = c.Arg(-1, name);
    if (value.kind == KValue::Kind::kJson) return *value.json;
  }
  return kNone;
}

std::vector<int64_t> IntOptions(LayerContext& c, std::initializer_list<const char*> names) {
  const Json wrapped{{"v", Option(c, names)}};
  Config config(wrapped);
  std::vector<int64_t> values = config.Ints("v", -1, {});
  c.b.Fail(config.status());
  return values;
}

bool BoolOption(LayerContext& c, std::initializer_list<const char*> names, bool otherwise) {
  const Json& value = Option(c, names);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

const KValue& Operand(LayerContext& c, int i, std::initializer_list<const char*> names) {
  if (i < static_cast<int>(c.call.args.size())) return c.call.args[i];
  for (const char* name : names) {
    const KValue& value = c.Arg(-1, name);
    if (!value.is_none()) return value;
  }
  static const KValue none;
  return none;
}

ValueRef OperandValue(LayerContext& c, const KValue& operand, ValueRef like) {
  GraphBuilder& b = c.b;
  if (operand.is_tensor()) return operand.tensor.value;
  const Json* json = operand.kind == KValue::Kind::kJson ? operand.json : nullptr;
  if (json != nullptr &&
      (Text(*json, "class_name") == "__numpy__" || Text(*json, "class_name") == "__tensor__"))
    json = &Member(Member(*json, "config"), "value");
  if (json != nullptr && json->is_boolean())
    return b.Scalar(DType::kBool, json->get<bool>() ? 1 : 0);
  if (json != nullptr && json->is_string()) return b.Text(json->get<std::string>());
  const bool floating = like.node < 0 || b.Floating(like);
  if (json != nullptr && json->is_number()) {
    const DType dtype = floating && like.node >= 0                    ? b.dtype(like)
                        : json->is_number_integer() && like.node >= 0 ? b.dtype(like)
                                                                      : DType::kFloat32;
    return b.Scalar(dtype, json->get<double>());
  }
  if (json != nullptr && json->is_array()) {
    const Json wrapped{{"v", *json}};
    Config config(wrapped);
    const std::vector<float> numbers = config.Floats("v");
    if (config.status().ok())
      return b.Cast(b.Const(Tensor::Vector(DType::kFloat32, numbers)),
                    like.node >= 0 ? b.dtype(like) : DType::kFloat32);
  }
  c.Fail(absl::StrCat("an argument is ", json == nullptr ? "missing" : Shown(*json)));
  return {};
}

std::pair<ValueRef, ValueRef> TwoOperands(LayerContext& c) {
  GraphBuilder& b = c.b;
  const KValue& first = Operand(c, 0, {"x", "x1", "a"});
  const KValue& second = Operand(c, 1, {"y", "x2", "b"});
  ValueRef x = first.is_tensor() ? first.tensor.value : ValueRef();
  ValueRef y = second.is_tensor() ? second.tensor.value : ValueRef();
  if (x.node < 0) x = OperandValue(c, first, y);
  if (y.node < 0) y = OperandValue(c, second, x);
  if (!b.ok()) return {};
  const int ox = Order(b.dtype(x)), oy = Order(b.dtype(y));
  if (ox >= 0 && oy >= 0 && ox != oy) {
    const DType to = ox > oy ? b.dtype(x) : b.dtype(y);
    x = b.Cast(x, to);
    y = b.Cast(y, to);
  }
  return {x, y};
}

}  // namespace floe::keras
