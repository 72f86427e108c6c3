// Masking: steps whose features all have one value are left out by what follows.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Masking(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const ValueRef differs =
      b.Op("NotEqual", {x, b.Scalar(b.dtype(x), c.config.Number("mask_value", 0))});
  const ValueRef kept = b.Reduce("Any", differs, {-1}, false);
  const ValueRef factor = b.Cast(b.ExpandDims(kept, -1), b.dtype(x));
  return KTensor{b.Mul(x, factor), kept};
}

const LayerRegistrar kMasking({"Masking"}, Masking);

}  // namespace
}  // namespace floe::keras
