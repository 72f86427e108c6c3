// Activation, and activations that are layers.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Activation(LayerContext& c) { return c.Activate("activation", c.In()); }

// max_value, negative_slope and threshold as Keras' relu has them.
KValue Relu(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const double slope = c.config.Number("negative_slope", 0);
  const double threshold = c.config.Number("threshold", 0);
  const bool bounded = c.config.Has("max_value");
  const double most = c.config.Number("max_value", 0);
  if (slope == 0 && threshold == 0 && bounded && most == 6) return b.Op("Relu6", {x});
  if (slope != 0 && threshold == 0 && !bounded)
    return b.Op("LeakyRelu", {x}, {{"alpha", static_cast<float>(slope)}});
  // Of the threshold itself Keras answers 0, and it bounds what is above before it adds the rest.
  const ValueRef edge = Scalar(b, b.dtype(x), threshold), zero = Scalar(b, b.dtype(x), 0);
  ValueRef y =
      threshold == 0 ? b.Op("Relu", {x}) : b.Op("SelectV2", {b.Op("Greater", {x, edge}), x, zero});
  if (bounded) {
    if (threshold < 0) y = b.Op("Relu", {y});
    y = b.Op("Minimum", {y, Scalar(b, b.dtype(x), most)});
  }
  if (slope == 0) return y;
  return Sub(b, y, Mul(b, b.Op("Relu", {Sub(b, edge, x)}), slope));
}

KValue LeakyRelu(LayerContext& c) {
  const double slope = c.config.Has("negative_slope") ? c.config.Number("negative_slope", 0.3)
                                                      : c.config.Number("alpha", 0.3);
  return c.b.Op("LeakyRelu", {c.In()}, {{"alpha", static_cast<float>(slope)}});
}

KValue PRelu(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  c.config.Ignore({"shared_axes"});  // of the variable's shape
  const ValueRef negative = b.Op("Relu", {b.Op("Neg", {x})});
  return Sub(b, b.Op("Relu", {x}), Mul(b, c.Weight(0), negative));
}

KValue Elu(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const double alpha = c.config.Number("alpha", 1);
  const ValueRef y = b.Op("Elu", {x});
  if (alpha == 1) return y;
  return b.Op("SelectV2", {b.Op("Greater", {x, Scalar(b, b.dtype(x), 0)}), x, Mul(b, y, alpha)});
}

KValue ThresholdedRelu(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const ValueRef above = b.Op("Greater", {x, Scalar(b, b.dtype(x), c.config.Number("theta", 1))});
  return Mul(b, x, Cast(b, above, b.dtype(x)));
}

// Along several axes, or the last. What is masked counts as far below all others, and in Keras 3
// gets nothing.
KValue Softmax(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = c.In();
  ValueRef mask = c.ArgValue(1, "mask");
  if (mask.node < 0) mask = c.Mask();
  if (c.config.Bool("robust_masking", false) && mask.node >= 0)
    return c.Refuse("robust_masking=True");
  if (mask.node >= 0) {
    mask = Cast(b, mask, DType::kBool);
    const ValueRef far = Scalar(b, b.dtype(x), b.dtype(x) == DType::kFloat16 ? -3e4 : -1e9);
    x = b.Op("SelectV2", {mask, x, c.keras2() ? Add(b, x, far) : far});
  }
  ValueRef y = SoftmaxOver(b, x, c.config.Ints("axis", -1, {-1}));
  if (mask.node >= 0 && !c.keras2()) y = b.Op("SelectV2", {mask, y, Scalar(b, b.dtype(y), 0)});
  return y;
}

const LayerRegistrar kActivation({"Activation"}, Activation, Masks::kPass);
const LayerRegistrar kRelu({"ReLU"}, Relu, Masks::kPass);
const LayerRegistrar kLeaky({"LeakyReLU"}, LeakyRelu, Masks::kPass);
const LayerRegistrar kPRelu({"PReLU"}, PRelu, Masks::kPass);
const LayerRegistrar kElu({"ELU"}, Elu, Masks::kPass);
const LayerRegistrar kThresholded({"ThresholdedReLU"}, ThresholdedRelu, Masks::kPass);
const LayerRegistrar kSoftmax({"Softmax"}, Softmax, Masks::kPass);

}  // namespace
}  // namespace floe::keras
