// Resizing of images, as Keras' image layers share it.
#pragma once

#include <string>

#include "model/import/keras/layer.h"

namespace floe::keras {

// images [batch, height, width, channels] to another size; `way`: bilinear, nearest, bicubic,
// area, lanczos3, lanczos5, gaussian or mitchellcubic. Floating types stay as they are.
ValueRef ResizeImages(LayerContext& c, ValueRef images, int64_t height, int64_t width,
                      const std::string& way, bool antialias = false);
// The largest part in the middle that has the proportions of height and width.
ValueRef CropToAspect(LayerContext& c, ValueRef images, int64_t height, int64_t width);
// Images with `value` around them, so that they have the proportions of height and width.
ValueRef PadToAspect(LayerContext& c, ValueRef images, int64_t height, int64_t width, double value);

}  // namespace floe::keras
