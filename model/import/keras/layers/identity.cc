// Layers that change nothing at inference: dropout, noise, random augmentation.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

// The rates of training.
KValue Same(LayerContext& c) {
  c.config.Ignore({"rate", "noise_shape", "stddev", "l1", "l2", "data_format"});
  return c.First().is_none() ? KValue(c.Input()) : c.First();
}

// That of Keras 2 makes a new tensor, without the mask.
KValue Identity(LayerContext& c) {
  KValue out = Same(c);
  if (c.keras2() && out.is_tensor()) out.tensor.mask = {};
  return out;
}

const LayerRegistrar kIdentity({"Identity", "TFDIdentity"}, Identity, Masks::kPassInKeras3);
const LayerRegistrar kPassing({"Dropout", "SpatialDropout1D", "SpatialDropout2D",
                               "SpatialDropout3D", "GaussianDropout", "GaussianNoise",
                               "AlphaDropout", "ActivityRegularization"},
                              Same, Masks::kPass);

// FeatureSpace's cast to the type of its policy, which may be a whole number.
KValue CastLayer(LayerContext& c) {
  const absl::StatusOr<DType> dtype = DTypeFromName(PolicyName(c.config.At("dtype"), true));
  if (!dtype.ok()) c.Fail("no type to cast to");
  return c.b.ok() ? KValue(Cast(c.b, c.In(), *dtype)) : KValue();
}

const LayerRegistrar kCast({"TFDCast"}, CastLayer);

}  // namespace
}  // namespace floe::keras
