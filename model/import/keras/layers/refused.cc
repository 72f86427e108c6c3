// Layers of keras.layers that are known and not served, with the reason.
#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue OtherFramework(LayerContext& c) {
  return c.Refuse("a model of another framework, which is not in the file,");
}
KValue Histograms(LayerContext& c) {
  return c.Refuse("equalising the histograms of parts of an image");
}
// Of images alone it changes nothing.
KValue Boxes(LayerContext& c) {
  c.config.Ignore({"max_number", "fill_value", "bounding_box_format", "data_format"});
  if (c.First().is_none() || c.First().is_tensor()) return c.In();
  return c.Refuse("a dict of bounding boxes");
}
KValue Wrapping(LayerContext& c) {
  return c.Refuse("a base class, whose code is not in the file,");
}

const LayerRegistrar kOther({"TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"},
                            OtherFramework);
const LayerRegistrar kHistograms({"ContrastLimitedAdaptiveHistogramEqualization"}, Histograms);
const LayerRegistrar kBoxes({"MaxNumBoundingBoxes"}, Boxes);
const LayerRegistrar kWrapper({"Wrapper", "Layer"}, Wrapping);

}  // namespace
}  // namespace floe::keras
