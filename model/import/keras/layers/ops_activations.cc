// Keras' activations as operations.
#include <map>
#include <string>
#include <utility>

#include "model/import/keras/axes.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue ActivationFunction(LayerContext& c) {
  static const std::map<std::string, std::string> names{{"Silu", "silu"},
                                                        {"HardSigmoid", "hard_sigmoid"},
                                                        {"HardSilu", "hard_silu"},
                                                        {"HardTanh", "hard_tanh"},
                                                        {"LogSigmoid", "log_sigmoid"},
                                                        {"TanhShrink", "tanh_shrink"},
                                                        {"SparsePlus", "sparse_plus"},
                                                        {"SparseSigmoid", "sparse_sigmoid"}};
  const auto found = names.find(OperationName(c));
  if (found == names.end()) return c.Refuse("this function");
  return ApplyActivation(c.b, found->second, FirstTensor(c), false);
}

KValue GeluFunction(LayerContext& c) {
  const bool approximate = BoolOption(c, {"approximate"}, IsKeras3(c));
  return ApplyActivation(c.b, approximate ? "gelu_approximate" : "gelu", FirstTensor(c), false);
}

KValue LeakyReluFunction(LayerContext& c) {
  const double slope = NumberOption(c, {"negative_slope", "alpha"}, 0.2);
  return c.b.Op("LeakyRelu", {FirstTensor(c)}, {{"alpha", static_cast<float>(slope)}});
}

// x where `far` holds and `otherwise` elsewhere.
ValueRef Where(GraphBuilder& b, ValueRef far, ValueRef x, double otherwise) {
  return b.Op("SelectV2", {far, x, Scalar(b, b.dtype(x), otherwise)});
}

KValue HardShrinkFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const double threshold = NumberOption(c, {"threshold"}, 0.5);
  return Where(b, b.Op("Greater", {b.Op("Abs", {x}), Scalar(b, b.dtype(x), threshold)}), x, 0);
}

KValue SoftShrinkFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const double threshold = NumberOption(c, {"threshold"}, 0.5);
  const ValueRef edge = Scalar(b, b.dtype(x), threshold), low = Scalar(b, b.dtype(x), -threshold);
  const ValueRef below = Where(b, b.Op("Less", {x, low}), Add(b, x, edge), 0);
  return b.Op("SelectV2", {b.Op("Greater", {x, edge}), Sub(b, x, edge), below});
}

KValue Threshold(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const double threshold = NumberOption(c, {"threshold"}, 0),
               otherwise = NumberOption(c, {"default_value"}, 0);
  return Where(b, b.Op("Greater", {x, Scalar(b, b.dtype(x), threshold)}), x, otherwise);
}

KValue SquareplusFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const double beyond = NumberOption(c, {"b"}, 4);
  const ValueRef root = b.Op("Sqrt", {Add(b, b.Op("Square", {x}), beyond)});
  return Mul(b, Add(b, x, root), 0.5);
}

KValue CeluFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const double alpha = NumberOption(c, {"alpha"}, 1);
  const ValueRef zero = Scalar(b, b.dtype(x), 0), low = b.Op("Minimum", {x, zero});
  const ValueRef curve = b.Op("Expm1", {b.Op("RealDiv", {low, Scalar(b, b.dtype(x), alpha)})});
  return Add(b, b.Op("Maximum", {x, zero}), Mul(b, curve, alpha));
}

KValue GluFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = FirstTensor(c);
  const int64_t axis = IntOption(c, {"axis"}, -1);
  if (!b.ok()) return {};
  const std::vector<ValueRef> halves = Split(b, x, static_cast<int>(axis), 2);
  return Mul(b, halves[0], b.Op("Sigmoid", {halves[1]}));
}

// An axis at the end, where the function works.
template <typename Function>
ValueRef AlongLast(GraphBuilder& b, ValueRef x, int64_t axis, const Function& function) {
  const ValueRef y = function(SwapAxes(b, x, axis, -1));
  return SwapAxes(b, y, axis, -1);
}

KValue SparsemaxFunction(LayerContext& c) {
  const ValueRef x = FirstTensor(c);
  return AlongLast(c.b, x, IntOption(c, {"axis"}, -1),
                   [&](ValueRef v) { return ApplyActivation(c.b, "sparsemax", v, false); });
}

// Without an axis, Keras 3 takes all numbers as one vector and TensorFlow the last axis.
KValue SoftmaxOf(LayerContext& c, const char* op) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"x", "logits"});
  const std::vector<int64_t> axes = IntOptions(c, {"axis", "dim"});
  const bool given = c.layer.config().contains("axis");
  const auto function = [&](ValueRef v) { return b.Op(op, {v}); };
  if (!b.ok()) return {};
  if (axes.empty() && IsKeras3(c) && given) {
    std::vector<WantedDim> dims;
    const int rank = Rank(b, x);
    dims.reserve(rank);
    for (int k = 0; k < rank; ++k) dims.push_back(DimOf(b, x, k));
    const ValueRef flat = Reshape(b, x, {WantedDim(1), WantedDim(-1)});
    return Reshape(b, function(flat), dims);
  }
  if (axes.size() > 1 && std::string(op) == "Softmax") return SoftmaxOver(b, x, axes);
  if (axes.size() > 1) return c.Refuse("several axes");
  return AlongLast(b, x, axes.empty() ? -1 : axes[0], function);
}
KValue SoftmaxFunction(LayerContext& c) { return SoftmaxOf(c, "Softmax"); }
KValue LogSoftmaxFunction(LayerContext& c) { return SoftmaxOf(c, "LogSoftmax"); }

const OperationRegistrar kActivations[] = {{"Silu", {"nn.silu", "nn.swish"}, ActivationFunction},
                                           {"HardSigmoid", {}, ActivationFunction},
                                           {"HardSilu", {}, ActivationFunction},
                                           {"HardTanh", {}, ActivationFunction},
                                           {"LogSigmoid", {"math.log_sigmoid"}, ActivationFunction},
                                           {"TanhShrink", {}, ActivationFunction},
                                           {"Squareplus", {}, SquareplusFunction},
                                           {"SparsePlus", {}, ActivationFunction},
                                           {"SparseSigmoid", {}, ActivationFunction},
                                           {"Sparsemax", {}, SparsemaxFunction},
                                           {"HardShrink", {}, HardShrinkFunction},
                                           {"SoftShrink", {}, SoftShrinkFunction},
                                           {"Celu", {}, CeluFunction},
                                           {"Glu", {}, GluFunction},
                                           {"Threshold", {}, Threshold},
                                           {"Gelu", {"nn.gelu"}, GeluFunction},
                                           {"LeakyRelu", {"nn.leaky_relu"}, LeakyReluFunction},
                                           {"Softmax", {"nn.softmax"}, SoftmaxFunction},
                                           {"LogSoftmax", {"nn.log_softmax"}, LogSoftmaxFunction}};

}  // namespace
}  // namespace floe::keras
