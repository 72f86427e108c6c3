// The layers that keras.applications' ConvNeXt brings along.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue LayerScale(LayerContext& c) { return c.b.Mul(c.In(), c.Weight(0)); }

// Drops whole samples in training only.
KValue StochasticDepth(LayerContext& c) { return c.Input(); }

const LayerRegistrar kScale({"LayerScale"}, LayerScale);
const LayerRegistrar kDepth({"StochasticDepth"}, StochasticDepth);

}  // namespace
}  // namespace floe::keras
