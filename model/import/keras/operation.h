// Operations that functional models call without a layer: keras.ops in Keras 3, TensorFlow's
// functions (TFOpLambda) in Keras 2. One rule serves both; options are in the configuration of the
// one and in the call of the other.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "model/import/keras/layer.h"

namespace floe::keras {

// The option under the first of these names that is there; null where none is.
const Json& Option(const LayerContext& c, std::initializer_list<const char*> names);
std::vector<int64_t> IntOptions(LayerContext& c, std::initializer_list<const char*> names);
bool BoolOption(LayerContext& c, std::initializer_list<const char*> names, bool otherwise);

// Argument number i, or by name; the position of a name that Keras 2 uses for tensors.
const KValue& Operand(LayerContext& c, int i, std::initializer_list<const char*> names);
// It as a value: a number becomes a constant that fits beside `like`.
ValueRef OperandValue(LayerContext& c, const KValue& operand, ValueRef like);
// Two operands in one type.
std::pair<ValueRef, ValueRef> TwoOperands(LayerContext& c);

// Registers a rule as keras.ops' class name and by the names of Keras 2's functions.
class OperationRegistrar {
 public:
  OperationRegistrar(const char* op, std::initializer_list<const char*> functions, LayerRule rule);
};

// The rule of a function of TensorFlow ("math.add"); null where there is none.
LayerRule FindFunction(const std::string& function);

}  // namespace floe::keras
