// Pooling over windows, over everything, and to a given size.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

KValue Pool(LayerContext& c) {
  GraphBuilder& b = c.b;
  Windows w(c, SpatialOf(c.class_name));
  const std::vector<int64_t> size = w.Option("pool_size", 2);
  const std::vector<int64_t> strides = c.config.Has("strides") ? w.Option("strides", 2) : size;
  const std::string padding = w.Padding(size, std::vector<int64_t>(w.spatial(), 1));
  const bool most = absl::StartsWith(c.class_name, "Max"), three = w.spatial() == 3;
  const std::string op = absl::StrCat(most ? "MaxPool" : "AvgPool", three ? "3D" : "");
  const ValueRef y = b.Op(op, {w.x()},
                          {{"ksize", w.Attribute(size)},
                           {"strides", w.Attribute(strides)},
                           {"padding", padding},
                           {"data_format", std::string(three ? "NDHWC" : "NHWC")}});
  return w.Back(y);
}

// A mask, for the average over one dim: the mean of what it lets through.
ValueRef MaskedMean(LayerContext& c, ValueRef x, ValueRef mask, bool channels_last, bool keep) {
  GraphBuilder& b = c.b;
  const int time = channels_last ? 1 : 2;
  const ValueRef open = ExpandDims(b, Cast(b, mask, b.dtype(x)), channels_last ? 2 : 1);
  return b.Op("RealDiv", {Reduce(b, "Sum", Mul(b, x, open), {time}, keep),
                          Reduce(b, "Sum", open, {time}, keep)});
}

KValue GlobalPool(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int spatial = SpatialOf(c.class_name);
  const bool last = c.ChannelsLast(), keep = c.config.Bool("keepdims", false);
  const ValueRef x = SpatialInput(c, spatial);
  const bool most = absl::StartsWith(c.class_name, "GlobalMax");
  if (!most && spatial == 1 && c.Mask().node >= 0) return MaskedMean(c, x, c.Mask(), last, keep);
  std::vector<int64_t> axes;
  axes.reserve(spatial);
  for (int k = 0; k < spatial; ++k) axes.push_back(k + (last ? 1 : 2));
  // Keras 3 has means of whole numbers in float32.
  const bool cast = !most && !c.keras2() && b.ok();
  const ValueRef numbers = cast ? Cast(b, x, FloatingType(b.dtype(x))) : x;
  return Reduce(b, most ? "Max" : "Mean", numbers, axes, keep);
}

// Each output takes the inputs in [i * in / out, ceil((i + 1) * in / out)).
ValueRef AdaptAxis(GraphBuilder& b, ValueRef x, int axis, int64_t out, bool most) {
  const int64_t in = SizeOf(b, x, axis, "the size that is pooled");
  std::vector<ValueRef> parts;
  for (int64_t i = 0; i < out && b.ok(); ++i) {
    const ValueRef part = Slice(b, x, axis, i * in / out, ((i + 1) * in + out - 1) / out);
    parts.push_back(Reduce(b, most ? "Max" : "Mean", part, {axis}, true));
  }
  return b.ok() ? Concat(b, parts, axis) : ValueRef();
}

KValue AdaptivePool(LayerContext& c) {
  GraphBuilder& b = c.b;
  const int spatial = SpatialOf(c.class_name);
  const bool last = c.ChannelsLast();
  const std::vector<int64_t> sizes =
      c.config.Ints("output_size", spatial, std::vector<int64_t>(spatial, 1));
  ValueRef x = SpatialInput(c, spatial);
  constexpr int64_t kMostParts = 4096;
  for (int k = 0; k < spatial && b.ok(); ++k) {
    if (sizes[k] < 1 || sizes[k] > kMostParts)
      c.Fail(absl::StrCat("output_size ", sizes[k], " is not between 1 and ", kMostParts));
    x = AdaptAxis(b, x, k + (last ? 1 : 2), sizes[k], absl::StrContains(c.class_name, "Max"));
  }
  return x;
}

const LayerRegistrar kPools({"MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D",
                             "AveragePooling2D", "AveragePooling3D", "MaxPool1D", "MaxPool2D",
                             "MaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D"},
                            Pool);
const LayerRegistrar kGlobal({"GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D",
                              "GlobalAveragePooling1D", "GlobalAveragePooling2D",
                              "GlobalAveragePooling3D", "GlobalMaxPool1D", "GlobalMaxPool2D",
                              "GlobalMaxPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D",
                              "GlobalAvgPool3D"},
                             GlobalPool);
const LayerRegistrar kAdaptive({"AdaptiveMaxPooling1D", "AdaptiveMaxPooling2D",
                                "AdaptiveMaxPooling3D", "AdaptiveAveragePooling1D",
                                "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D"},
                               AdaptivePool);

}  // namespace
}  // namespace floe::keras
