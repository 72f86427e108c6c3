// Operations on images.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "model/import/keras/images.h"
#include "model/import/keras/operation.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

// The size inside `size` that has the proportions of the images.
std::vector<int64_t> ProportionalSize(GraphBuilder& b, ValueRef x,
                                      const std::vector<int64_t>& size) {
  const auto height = static_cast<float>(SizeOf(b, x, 1, "the height")),
             width = static_cast<float>(SizeOf(b, x, 2, "the width"));
  const float scale =
      std::min(static_cast<float>(size[0]) / height, static_cast<float>(size[1]) / width);
  return {std::llrint(scale * height), std::llrint(scale * width)};
}

KValue Resize(LayerContext& c) {
  GraphBuilder& b = c.b;
  std::vector<int64_t> size = IntOptions(c, {"size"});
  const std::string way = TextOption(c, {"interpolation", "method"}, "bilinear");
  const bool antialias = BoolOption(c, {"antialias"}, false);
  const bool last = TextOption(c, {"data_format"}, "channels_last") == "channels_last";
  const bool keep = BoolOption(c, {"preserve_aspect_ratio"}, false);
  if (size.size() != 2) c.Fail("a height and a width are needed");
  const bool crop = BoolOption(c, {"crop_to_aspect_ratio"}, false),
             pad = BoolOption(c, {"pad_to_aspect_ratio"}, false);
  const std::string fill = TextOption(c, {"fill_mode"}, "constant");
  const double value = NumberOption(c, {"fill_value"}, 0);
  ValueRef x = FirstTensor(c);
  const bool alone = Rank(b, x) == 3;
  if (alone) x = ExpandDims(b, x, 0);
  x = ChannelsToLast(b, x, last);
  if (!b.ok()) return {};
  if (crop) x = CropToAspect(c, x, size[0], size[1]);
  if (pad && fill != "constant") return c.Refuse("fill_mode " + fill);
  if (pad) x = PadToAspect(c, x, size[0], size[1], value);
  if (keep) size = ProportionalSize(b, x, size);
  // TensorFlow's own answers in float32, but for the nearest pixels.
  if (!IsKeras3(c) && way != "nearest") x = Cast(b, x, DType::kFloat32);
  ValueRef y = ResizeImages(c, x, size[0], size[1], way, antialias);
  y = ChannelsFromLast(b, y, last);
  return alone ? Squeeze(b, y, {0}) : y;
}

KValue CropAndResize(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = TensorAt(c, 0, {"image"}), boxes = TensorAt(c, 1, {"boxes"}),
                 owners = TensorAt(c, 2, {"box_indices", "box_ind"});
  const std::vector<int64_t> size = IntOptions(c, {"crop_size"});
  const std::string method = TextOption(c, {"method"}, "bilinear");
  const double outside = NumberOption(c, {"extrapolation_value"}, 0);
  return b.Op("CropAndResize",
              {x, Cast(b, boxes, DType::kFloat32), Cast(b, owners, DType::kInt32), Ints(b, size)},
              {{"method", method}, {"extrapolation_value", static_cast<float>(outside)}});
}

KValue AffineTransform(LayerContext& c) {
  GraphBuilder& b = c.b;
  ValueRef x = TensorAt(c, 0, {"images"}), transform = TensorAt(c, 1, {"transform"});
  const bool last = TextOption(c, {"data_format"}, "channels_last") == "channels_last";
  const std::string way = TextOption(c, {"interpolation"}, "bilinear"),
                    fill = TextOption(c, {"fill_mode"}, "constant");
  const double value = NumberOption(c, {"fill_value"}, 0);
  const bool alone = Rank(b, x) == 3;
  if (alone) x = ExpandDims(b, x, 0);
  if (b.ok() && Rank(b, transform) == 1) transform = ExpandDims(b, transform, 0);
  x = ChannelsToLast(b, x, last);
  const ValueRef size = ShapeVector(b, {DimOf(b, x, 1), DimOf(b, x, 2)});
  const ValueRef y = b.Op(
      "ImageProjectiveTransformV3",
      {x, Cast(b, transform, DType::kFloat32), size, Scalar(b, DType::kFloat32, value)},
      {{"interpolation", absl::AsciiStrToUpper(way)}, {"fill_mode", absl::AsciiStrToUpper(fill)}});
  const ValueRef out = ChannelsFromLast(b, y, last);
  return alone ? Squeeze(b, out, {0}) : out;
}

const OperationRegistrar kImages[] = {{"Resize", {"image.resize"}, Resize},
                                      {"AffineTransform", {}, AffineTransform},
                                      {"", {"image.crop_and_resize"}, CropAndResize}};

}  // namespace
}  // namespace floe::keras
