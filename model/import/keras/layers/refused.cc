// Layers of keras.layers that are known and not served, with the reason.
#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Refuse(LayerContext& c, const std::string& why) {
  c.b.Fail(absl::UnimplementedError(absl::StrCat(
      why, "; export the model with model.export() and serve the SavedModel that it writes")));
  return {};
}

KValue OtherFramework(LayerContext& c) {
  return Refuse(c, "it runs a model of another framework, which is not in the file");
}
KValue Histograms(LayerContext& c) {
  return Refuse(c, "it equalises the histograms of parts of an image, which is not supported");
}
// Of images alone it changes nothing.
KValue Boxes(LayerContext& c) {
  if (c.call.args.empty() || c.call.args[0].is_tensor()) return c.In();
  return Refuse(c, "bounding boxes are not supported");
}
KValue Wrapping(LayerContext& c) { return Refuse(c, "a wrapper's code is not in the file"); }

const LayerRegistrar kOther({"TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"},
                            OtherFramework);
const LayerRegistrar kHistograms({"ContrastLimitedAdaptiveHistogramEqualization"}, Histograms);
const LayerRegistrar kBoxes({"MaxNumBoundingBoxes"}, Boxes);
const LayerRegistrar kWrapper({"Wrapper", "Layer"}, Wrapping);

}  // namespace
}  // namespace floe::keras
