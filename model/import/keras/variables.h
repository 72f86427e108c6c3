// What variables the layers of a file have, told by their configurations alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/import/keras/json.h"

namespace floe::keras {

struct Variable {
  std::string path;  // of the layer that owns it, as LayerWeights have it
  int index = 0;     // among the variables of that layer, those that are trained first
  bool trained = true;
  // Its shape where the configuration says it, -1 for sizes that it leaves to the input.
  std::optional<std::vector<int64_t>> dims = {};
};

// What wrote a file, where that makes a difference.
enum class Writer {
  kKeras3,
  kKeras2,    // nothing inside of a layer that is not trained is
  kKeras213,  // places are of another name, and count layers with variables twice: dense, dense_2
  kKeras214,  // places are of that name
};

// What Keras 2.13 and 2.14 call the "layers" of a model.
inline constexpr const char* kOldLayers = "_layer_checkpoint_dependencies";

struct LayerVariables {
  std::vector<Variable> all;  // depth first, in the order of Keras' own list
  // Where such a file has a layer, by the path that others have it at.
  std::map<std::string, std::string> moved;
  std::vector<std::string> unknown;  // classes of which nothing is known, which may have more
};

// Those of a layer and of all layers in it. `path` is the layer's own.
LayerVariables VariablesOf(const Json& layer, const std::string& path, Writer writer);
// Those of the layers of a model, one by one in the model's order.
struct NamedVariables {
  std::string name;
  LayerVariables variables;
};
std::vector<NamedVariables> VariablesOfLayers(const Json& model, Writer writer);

// The list of a model's layers; a JSON null where the configuration has none.
const Json& LayersOf(const Json& model);
// Whether a layer is a model, of class Functional or Sequential.
bool IsModel(const Json& layer);

// "Conv2DTranspose" -> "conv2d_transpose", as Keras names places.
std::string SnakeCase(const std::string& exported_name);

// The places of a model's layers: SNAKE, SNAKE_1, ...
class PlaceNames {
 public:
  // The next one of this class.
  std::string Next(const std::string& class_name);
  // One place of this class stays empty.
  void Skip(const std::string& class_name) { ++numbers_[SnakeCase(class_name)]; }

 private:
  std::map<std::string, int> numbers_;
};

}  // namespace floe::keras
