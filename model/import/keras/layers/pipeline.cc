// Pipeline: layers in a row.
#include "model/import/keras/layer.h"
#include "model/import/keras/variables.h"

namespace floe::keras {
namespace {

KValue Pipeline(LayerContext& c) {
  const Json* const layers = Items(c.config.At("layers"));
  if (layers == nullptr) {
    c.Fail("its configuration has no list of layers");
    return {};
  }
  KValue value = c.First().is_none() ? KValue(c.Input()) : c.First();
  PlaceNames places;
  for (const Json& layer : *layers) {
    Call inner;
    inner.args.push_back(value);
    const std::string place = places.Next(Text(layer, "class_name"));
    value = c.CallLayer(layer, c.layer.weights.Child("layers").Child(place), inner);
    if (!c.b.ok()) return {};
  }
  return value;
}

const LayerRegistrar kPipeline({"Pipeline"}, Pipeline, Masks::kPass);

}  // namespace
}  // namespace floe::keras
