// Operations that functional models call without a layer: keras.ops in Keras 3, TensorFlow's
// functions (TFOpLambda) in Keras 2. One rule serves both; options are in the configuration of the
// one and in the call of the other.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "model/import/keras/layer.h"

namespace floe::keras {

using Names = std::initializer_list<const char*>;

// ---- options: the arguments of a function that are no tensors ----

// The option under the first of these names that is there; null where none is. One that is
// computed is an error.
const Json& Option(LayerContext& c, Names names);
std::vector<int64_t> IntOptions(LayerContext& c, Names names);
int64_t IntOption(LayerContext& c, Names names, int64_t otherwise);
double NumberOption(LayerContext& c, Names names, double otherwise);
bool BoolOption(LayerContext& c, Names names, bool otherwise);
std::string TextOption(LayerContext& c, Names names, const std::string& otherwise);
// A type by its name, a policy or TensorFlow's number of it; none where it is null.
std::optional<DType> TypeOption(LayerContext& c, Names names);

// ---- operands: the arguments that may be tensors ----

// A tensor, a constant, or a number that takes the type of what it meets.
struct Operand {
  ValueRef value;
  bool weak = false;      // a number of Python, int64 or float64
  bool constant = false;  // no tensor of the graph
  bool present() const { return value.node >= 0; }
};

// Argument number i, or by one of these names; not present where it is left out or None.
Operand OperandAt(LayerContext& c, int i, Names names);
// All that argument number i has: of a list, each of its items.
std::vector<Operand> OperandsAt(LayerContext& c, int i, Names names);
// Argument number i as a tensor; an error where it is left out. A number alone is int32 or float32.
ValueRef TensorAt(LayerContext& c, int i, Names names);
// The first one, "x".
ValueRef FirstTensor(LayerContext& c);

// The operand with the type that TensorFlow gives a mere number: int32 or float32.
Operand Strong(LayerContext& c, Operand operand);
// Operands in one type: in Keras 3 the one it promotes to, in Keras 2 constants take the type of
// the first tensor. `at_least` joins the types in Keras 3.
std::vector<ValueRef> InOneType(LayerContext& c, const std::vector<Operand>& operands,
                                std::optional<OperandType> at_least = {});
// Arguments 0 and 1 in one type.
std::pair<ValueRef, ValueRef> TwoOperands(LayerContext& c);

// The name that keras.ops has for it ("Add"), whichever of the two it is called by.
std::string OperationName(const LayerContext& c);
// Whether it is one of keras.ops.
bool IsKeras3(const LayerContext& c);

// Registers a rule as keras.ops' class name and by the names of Keras 2's functions.
class OperationRegistrar {
 public:
  OperationRegistrar(const char* op, const std::vector<const char*>& functions, LayerRule rule);
};

// ---- tables of functions that one rule serves: entries with `name` and `functions` ----

// Registers all of them.
template <class Entry>
bool RegisterFunctions(const std::vector<Entry>& table, LayerRule rule) {
  for (const Entry& entry : table) OperationRegistrar(entry.name, entry.functions, rule);
  return true;
}
// The entry of the operation that is called.
template <class Entry>
const Entry& FunctionOf(const LayerContext& c, const std::vector<Entry>& table) {
  const std::string name = OperationName(c);
  return *std::find_if(table.begin(), table.end(), [&](const Entry& e) { return name == e.name; });
}

// The rule of a function of TensorFlow ("math.add"); null where there is none.
LayerRule FindFunction(const std::string& function);

}  // namespace floe::keras
