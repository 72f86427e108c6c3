// Layers that change nothing at inference: dropout, noise, random augmentation.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Same(LayerContext& c) { return c.call.args.empty() ? KValue(c.Input()) : c.call.args[0]; }

const LayerRegistrar kPassing({"Identity", "Dropout", "SpatialDropout1D", "SpatialDropout2D",
                               "SpatialDropout3D", "GaussianDropout", "GaussianNoise",
                               "AlphaDropout", "ActivityRegularization"},
                              Same, Masks::kPass);

}  // namespace
}  // namespace floe::keras
