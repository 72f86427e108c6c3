#include "model/import/keras/operation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/constants.h"

namespace floe::keras {
namespace {

struct NamedFunction {
  LayerRule rule = nullptr;
  std::string op;  // its name in keras.ops, or ""
};

std::map<std::string, NamedFunction>& NamedFunctions() {
  static std::map<std::string, NamedFunction> functions;
  return functions;
}

const NamedFunction* FindNamed(const std::string& function) {
  const std::string old = "compat.v1.";
  const auto found = NamedFunctions().find(
      absl::StartsWith(function, old) ? function.substr(old.size()) : function);
  return found == NamedFunctions().end() ? nullptr : &found->second;
}

const Json kNone;

}  // namespace

OperationRegistrar::OperationRegistrar(const char* op, const std::vector<const char*>& functions,
                                       LayerRule rule) {
  if (*op != '\0') {
    const std::string name = absl::StrCat("ops.", op);
    const LayerRegistrar registered({name.c_str()}, rule);
  }
  for (const char* function : functions) NamedFunctions()[function] = {rule, op};
}

LayerRule FindFunction(const std::string& function) {
  const NamedFunction* const found = FindNamed(function);
  return found == nullptr ? nullptr : found->rule;
}

bool IsKeras3(const LayerContext& c) { return absl::StartsWith(c.class_name, "ops."); }

std::string OperationName(const LayerContext& c) {
  if (IsKeras3(c)) return c.class_name.substr(4);
  const NamedFunction* const found = FindNamed(c.class_name);
  return found == nullptr || found->op.empty() ? c.class_name : found->op;
}

// ---- options ----

const Json& Option(LayerContext& c, Names names) {
  const Json* option = &kNone;
  for (const char* name : names) {
    // What Keras 2's layer around a function has are no arguments of the function.
    if (IsKeras3(c) && option->is_null()) option = &c.config.At(name);
    const KValue& value = c.Arg(-1, name);
    if (value.is_tensor() || !value.items.empty())
      c.Fail(absl::StrCat("argument ", Quoted(name), " is computed, which is not supported"));
    if (option->is_null() && value.kind == KValue::Kind::kJson) option = value.json;
  }
  return *option;
}

namespace {

// Reads an option by one of Config's readers.
template <typename Read>
auto ReadOption(LayerContext& c, Names names, const Read& read) {
  const std::string name = names.size() == 0 ? std::string() : *names.begin();
  const Json wrapped{{name, Option(c, names)}};
  Config config(wrapped);
  auto value = read(config, name);
  c.b.Fail(config.status());
  return value;
}

}  // namespace

std::vector<int64_t> IntOptions(LayerContext& c, Names names) {
  return ReadOption(
      c, names, [](Config& config, const std::string& name) { return config.Ints(name, -1, {}); });
}

int64_t IntOption(LayerContext& c, Names names, int64_t otherwise) {
  return ReadOption(c, names, [&](Config& config, const std::string& name) {
    return config.Int(name, otherwise);
  });
}

double NumberOption(LayerContext& c, Names names, double otherwise) {
  return ReadOption(c, names, [&](Config& config, const std::string& name) {
    return config.Number(name, otherwise);
  });
}

bool BoolOption(LayerContext& c, Names names, bool otherwise) {
  return ReadOption(c, names, [&](Config& config, const std::string& name) {
    return config.Bool(name, otherwise);
  });
}

std::string TextOption(LayerContext& c, Names names, const std::string& otherwise) {
  return ReadOption(c, names, [&](Config& config, const std::string& name) {
    return config.String(name, otherwise);
  });
}

std::optional<DType> TypeOption(LayerContext& c, Names names) {
  const Json& option = Option(c, names);
  if (option.is_null()) return {};
  int64_t number = 0;
  if (ToInt(option, &number) && number > 0 && number <= static_cast<int64_t>(DType::kUInt64))
    return static_cast<DType>(number);
  const std::string name = PolicyName(option, /*compute=*/true);
  // Keras' own names of the types that TensorFlow gives Python's numbers.
  if (name == "int") return DType::kInt64;
  if (name == "float") return DType::kFloat32;
  const absl::StatusOr<DType> dtype = DTypeFromName(name);
  if (dtype.ok()) return *dtype;
  c.Fail(absl::StrCat("argument ", Quoted(*names.begin()), " is ", Shown(option), ", no type"));
  return {};
}

// ---- operands ----

namespace {

const KValue& ArgumentAt(LayerContext& c, int i, Names names) {
  const KValue* found = &c.Arg(i, "");
  for (const char* name : names) {
    const KValue& value = c.Arg(-1, name);
    if (found->is_none()) found = &value;
  }
  return *found;
}

Operand OperandOf(LayerContext& c, const KValue& value) {
  if (value.is_tensor()) return {value.tensor.value};
  if (value.kind == KValue::Kind::kList && !value.items.empty()) {
    // A list inside a list: a tensor of what it has.
    std::vector<Operand> parts;
    parts.reserve(value.items.size());
    for (const KValue& item : value.items) parts.push_back(OperandOf(c, item));
    const bool whole =
        std::all_of(parts.begin(), parts.end(), [](const Operand& part) { return part.present(); });
    const std::vector<ValueRef> values =
        whole && c.b.ok() ? InOneType(c, parts) : std::vector<ValueRef>();
    return values.empty() ? Operand() : Operand{Pack(c.b, values, 0)};
  }
  if (value.kind != KValue::Kind::kJson || value.json->is_null() || !c.b.ok()) return {};
  const absl::StatusOr<Constant> constant = ConstantOf(*value.json);
  if (!constant.ok()) {
    c.b.Fail(constant.status());
    return {};
  }
  return {Cast(c.b, c.b.Const(constant->tensor), constant->dtype), constant->weak, true};
}

}  // namespace

Operand OperandAt(LayerContext& c, int i, Names names) {
  const KValue& value = ArgumentAt(c, i, names);
  if (!value.items.empty()) {
    c.Fail(absl::StrCat("argument ", i, " is a list with tensors, one is expected"));
    return {};
  }
  return OperandOf(c, value);
}

std::vector<Operand> OperandsAt(LayerContext& c, int i, Names names) {
  const KValue& value = ArgumentAt(c, i, names);
  std::vector<Operand> operands;
  for (const KValue& item : value.items) operands.push_back(OperandOf(c, item));
  if (value.items.empty()) operands.push_back(OperandOf(c, value));
  for (const Operand& operand : operands) {
    if (!operand.present()) c.Fail(absl::StrCat("argument ", i, " has a part that is missing"));
  }
  return operands;
}

ValueRef TensorAt(LayerContext& c, int i, Names names) {
  const Operand operand = OperandAt(c, i, names);
  if (!operand.present())
    c.Fail(absl::StrCat("argument ", i, names.size() == 0 ? "" : ", ",
                        names.size() == 0 ? "" : *names.begin(), ", is missing"));
  return Strong(c, operand).value;
}

Operand Strong(LayerContext& c, Operand operand) {
  if (!c.b.ok() || !operand.weak || !IsKeras3(c)) return operand;
  return {Cast(c.b, operand.value, ResultType({{c.b.dtype(operand.value), true}})), false, true};
}

ValueRef FirstTensor(LayerContext& c) {
  return TensorAt(c, 0,
                  {"x", "input", "inputs", "input_tensor", "features", "tensor", "value", "images",
                   "image", "values", "params", "data", "a"});
}

std::vector<ValueRef> InOneType(LayerContext& c, const std::vector<Operand>& operands,
                                std::optional<OperandType> at_least) {
  GraphBuilder& b = c.b;
  if (!b.ok()) return std::vector<ValueRef>(operands.size());
  std::vector<OperandType> types;
  if (at_least.has_value()) types.push_back(*at_least);
  for (const Operand& operand : operands) types.push_back({b.dtype(operand.value), operand.weak});
  DType dtype = ResultType(types);
  if (!IsKeras3(c)) {
    const auto tensor = std::find_if(operands.begin(), operands.end(),
                                     [](const Operand& operand) { return !operand.constant; });
    if (tensor != operands.end()) dtype = b.dtype(tensor->value);
  }
  if (dtype == DType::kInvalid) c.Fail("values of types that have no common one");
  std::vector<ValueRef> values;
  values.reserve(operands.size());
  for (const Operand& operand : operands) {
    // TensorFlow refuses tensors of two types, and so does the op.
    const bool cast = IsKeras3(c) || operand.constant;
    values.push_back(b.ok() && cast ? Cast(b, operand.value, dtype) : operand.value);
  }
  return values;
}

std::pair<ValueRef, ValueRef> TwoOperands(LayerContext& c) {
  const Operand x = OperandAt(c, 0, {"x1", "x", "a"}), y = OperandAt(c, 1, {"x2", "y", "b"});
  if (!x.present() || !y.present()) c.Fail("it needs two arguments");
  if (!c.b.ok()) return {};
  const std::vector<ValueRef> values = InOneType(c, {x, y});
  return {values[0], values[1]};
}

}  // namespace floe::keras
