// TFOpLambda: the layer that Keras 2 makes of a function of TensorFlow between layers.
#include "absl/strings/str_cat.h"
#include "model/import/keras/operation.h"

namespace floe::keras {
namespace {

KValue TensorFlowFunction(LayerContext& c) {
  std::string function = c.config.String("function", "");
  if (c.class_name == "SlicingOpLambda" && FindFunction(function) == nullptr)
    function = "__operators__.getitem";
  const LayerRule rule = FindFunction(function);
  if (rule == nullptr) return c.Refuse(absl::StrCat("function tf.", function, " in a Keras file"));
  c.class_name = function;
  return rule(c);
}

const LayerRegistrar kLambda({"TFOpLambda", "SlicingOpLambda"}, TensorFlowFunction);

}  // namespace
}  // namespace floe::keras
