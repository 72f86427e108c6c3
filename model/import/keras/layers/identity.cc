// Layers that change nothing at inference: dropout, noise, random augmentation.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

// The rates of training.
KValue Same(LayerContext& c) {
  c.config.Ignore({"rate", "noise_shape", "stddev", "l1", "l2", "data_format"});
  return c.First().is_none() ? KValue(c.Input()) : c.First();
}

const LayerRegistrar kPassing({"Identity", "Dropout", "SpatialDropout1D", "SpatialDropout2D",
                               "SpatialDropout3D", "GaussianDropout", "GaussianNoise",
                               "AlphaDropout", "ActivityRegularization"},
                              Same, Masks::kPass);

}  // namespace
}  // namespace floe::keras
