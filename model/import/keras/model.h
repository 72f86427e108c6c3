// Models as layers: Sequential and functional graphs of layers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/import/keras/layer.h"

namespace floe::keras {

// What a whole model takes and gives, by the names of its signature.
struct ModelEnds {
  std::vector<std::pair<std::string, ValueRef>> inputs, outputs;
};

// Writes the model whose object (class_name, config) is `model`, with inputs of the graph for its
// input layers. Errors are the builder's.
ModelEnds BuildModel(GraphBuilder& b, const ModelFile& file, const LayerObject& model);

}  // namespace floe::keras
