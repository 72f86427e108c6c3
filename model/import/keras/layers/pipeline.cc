// Pipeline: layers in a row.
#include <map>

#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Pipeline(LayerContext& c) {
  const Json* const layers = Items(c.config.At("layers"));
  if (layers == nullptr) {
    c.Fail("its configuration has no list of layers");
    return {};
  }
  KValue value = c.First().is_none() ? KValue(c.Input()) : c.First();
  std::map<std::string, int> places;
  for (const Json& layer : *layers) {
    const std::string snake = SnakeCase(Text(layer, "class_name"));
    const int number = places[snake]++;
    Call inner;
    inner.args.push_back(value);
    value = c.CallLayer(layer,
                        c.layer.weights.Child("layers").Child(
                            number == 0 ? snake : absl::StrCat(snake, "_", number)),
                        inner);
    if (!c.b.ok()) return {};
  }
  return value;
}

const LayerRegistrar kPipeline({"Pipeline"}, Pipeline, Masks::kPass);

}  // namespace
}  // namespace floe::keras
