// The layers that keras.applications' ConvNeXt brings along.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue LayerScale(LayerContext& c) {
  c.config.Ignore({"init_values"});
  const ValueRef scale = c.Weight(0);
  c.CheckSize("projection_dim", SizeOf(c.b, scale, -1, "a weight"), "its weight");
  return Mul(c.b, c.In(), scale);
}

// Drops whole samples in training only.
KValue StochasticDepth(LayerContext& c) {
  c.config.Ignore({"drop_path_rate"});
  return c.Input();
}

const LayerRegistrar kScale({"LayerScale"}, LayerScale);
const LayerRegistrar kDepth({"StochasticDepth"}, StochasticDepth);

}  // namespace
}  // namespace floe::keras
