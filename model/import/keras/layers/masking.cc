// Masking: steps whose features all have one value are left out by what follows.
#include "model/import/keras/layer.h"

namespace floe::keras {
namespace {

KValue Masking(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = c.In();
  const ValueRef differs =
      b.Op("NotEqual", {x, Scalar(b, b.dtype(x), c.config.Number("mask_value", 0))});
  const ValueRef kept = Reduce(b, "Any", differs, {-1}, false);
  const ValueRef factor = Cast(b, ExpandDims(b, kept, -1), b.dtype(x));
  return KTensor{Mul(b, x, factor), kept};
}

const LayerRegistrar kMasking({"Masking"}, Masking);

}  // namespace
}  // namespace floe::keras
