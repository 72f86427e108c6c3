// The order in which Keras runs the calls of a functional model. It shows where a call changes what
// later ones find, as attention does that takes the masks off its inputs.
#pragma once

#include <vector>

namespace floe::keras {

// One call of a layer.
struct OrderedCall {
  int layer = 0;
  std::vector<int> needs;  // calls whose results it takes, in the order of its arguments
};

// Numbers of the calls that the `outputs`, in their order, need: those furthest from the outputs
// first, as keras/src/ops/function.py has them (Keras 3.15). Of calls in a circle any order.
std::vector<int> CallOrder(const std::vector<OrderedCall>& calls, const std::vector<int>& outputs);

}  // namespace floe::keras
