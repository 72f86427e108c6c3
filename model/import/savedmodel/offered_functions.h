// Functions of a SavedModel that was saved without signatures, offered as signatures.
#pragma once

#include <vector>

#include "model/import/savedmodel/meta_graph.h"

namespace floe {

// Of the root object, under their names: `__call__` and those that do not begin with an underscore.
// Where it has none, those of the objects below it, as "encoder.call"; what a Keras model would
// export is called as the model is. Further traces of a function have _2, _3 and so on behind the
// name; those called with True, as training=True, come last. serving_default is `__call__`, or the
// only function. Adds the calls to the graph. Inputs are called as their specs, outputs as
// TensorFlow's signatures call them (structure.h). `problem` of those that cannot be called.
std::vector<FileSignature> OfferFunctions(tensorflow::MetaGraphDef* meta);

}  // namespace floe
