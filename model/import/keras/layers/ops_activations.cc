// Keras' activations as operations.
#include <map>
#include <string>

#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue Activation(LayerContext& c) {
  static const std::map<std::string, std::string> names{{"Silu", "silu"},
                                                        {"HardSigmoid", "hard_sigmoid"},
                                                        {"HardSilu", "hard_silu"},
                                                        {"HardTanh", "hard_tanh"},
                                                        {"LogSigmoid", "log_sigmoid"},
                                                        {"TanhShrink", "tanh_shrink"},
                                                        {"Squareplus", "squareplus"},
                                                        {"SparsePlus", "sparse_plus"},
                                                        {"SparseSigmoid", "sparse_sigmoid"},
                                                        {"Sparsemax", "sparsemax"},
                                                        {"HardShrink", "hard_shrink"},
                                                        {"SoftShrink", "soft_shrink"}};
  const auto found = names.find(OperationName(c));
  if (found == names.end()) return c.Refuse("this function");
  return ApplyActivation(c.b, found->second, FirstTensor(c), false);
}

KValue Gelu(LayerContext& c) {
  const bool approximate = BoolOption(c, {"approximate"}, IsKeras3(c));
  return ApplyActivation(c.b, approximate ? "gelu_approximate" : "gelu", FirstTensor(c), false);
}

KValue LeakyRelu(LayerContext& c) {
  const double slope = NumberOption(c, {"negative_slope", "alpha"}, 0.2);
  return c.b.Op("LeakyRelu", {FirstTensor(c)}, {{"alpha", static_cast<float>(slope)}});
}

ValueRef SoftmaxOf(LayerContext& c) {
  std::vector<int64_t> axes = IntOptions(c, {"axis"});
  if (axes.empty()) axes = {-1};
  return SoftmaxOver(c.b, TensorAt(c, 0, {"x", "logits"}), axes);
}
KValue Softmax(LayerContext& c) { return SoftmaxOf(c); }
KValue LogSoftmax(LayerContext& c) { return c.b.Op("Log", {SoftmaxOf(c)}); }

const OperationRegistrar kActivations[] = {{"Silu", {"nn.silu", "nn.swish"}, Activation},
                                           {"HardSigmoid", {}, Activation},
                                           {"HardSilu", {}, Activation},
                                           {"HardTanh", {}, Activation},
                                           {"LogSigmoid", {"math.log_sigmoid"}, Activation},
                                           {"TanhShrink", {}, Activation},
                                           {"Squareplus", {}, Activation},
                                           {"SparsePlus", {}, Activation},
                                           {"SparseSigmoid", {}, Activation},
                                           {"Sparsemax", {}, Activation},
                                           {"HardShrink", {}, Activation},
                                           {"SoftShrink", {}, Activation},
                                           {"Gelu", {"nn.gelu"}, Gelu},
                                           {"LeakyRelu", {"nn.leaky_relu"}, LeakyRelu},
                                           {"Softmax", {"nn.softmax"}, Softmax},
                                           {"LogSoftmax", {"nn.log_softmax"}, LogSoftmax}};

}  // namespace
}  // namespace floe::keras
