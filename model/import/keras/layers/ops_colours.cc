// Operations on the colours of images.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/import/keras/operation.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

ValueRef ImageOf(LayerContext& c) { return TensorAt(c, 0, {"images", "image"}); }

// The greatest number of a type of whole numbers; 0 for others.
double Greatest(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return 255;
    case DType::kInt8:
      return 127;
    case DType::kUInt16:
      return 65535;
    case DType::kInt16:
      return 32767;
    case DType::kInt32:
      return 2147483647;
    default:
      return 0;
  }
}

// tf.image.convert_image_dtype: whole numbers stand for [0, 1].
ValueRef Converted(LayerContext& c, ValueRef x, DType to, bool saturate) {
  GraphBuilder& b = c.b;
  if (!b.ok() || b.dtype(x) == to) return x;
  const DType from = b.dtype(x);
  if (Floating(b, x) && IsFloating(to)) return Cast(b, x, to);
  if (IsFloating(to) && Greatest(from) > 0)
    return Mul(b, Cast(b, x, to), Scalar(b, to, 1 / Greatest(from)));
  if (!Floating(b, x) || Greatest(to) == 0 || DTypeSize(to) > 2) {
    c.Refuse(absl::StrCat("an image of ", DTypeName(from), " as ", DTypeName(to)));
    return {};
  }
  ValueRef scaled = Mul(b, x, Scalar(b, from, Greatest(to) + 0.5));
  if (saturate) {
    const bool is_signed = to == DType::kInt8 || to == DType::kInt16;
    const double low = is_signed ? -Greatest(to) - 1 : 0;
    scaled = b.Op("Minimum", {scaled, Scalar(b, from, Greatest(to))});
    scaled = b.Op("Maximum", {scaled, Scalar(b, from, low)});
  }
  return Cast(b, scaled, to);
}

KValue ConvertDtype(LayerContext& c) {
  const ValueRef x = ImageOf(c);
  const std::optional<DType> to = TypeOption(c, {"dtype"});
  const bool saturate = BoolOption(c, {"saturate"}, false);
  if (!to.has_value()) c.Fail("no type");
  return c.b.ok() ? KValue(Converted(c, x, *to, saturate)) : KValue();
}

// The image in floats, as TensorFlow's adjustments take it.
ValueRef AsFloats(LayerContext& c, ValueRef x) {
  const DType dtype = c.b.dtype(x);
  const bool floats = dtype == DType::kFloat16 || dtype == DType::kFloat32;
  return floats ? x : Converted(c, x, DType::kFloat32, false);
}

KValue Adjust(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef image = ImageOf(c), x = AsFloats(c, image);
  if (!b.ok()) return {};
  const auto factor = [&](Names names, double otherwise) {
    if (otherwise == 0 && Option(c, names).is_null()) c.Fail("it needs a number");
    return NumberOption(c, names, otherwise);
  };
  const std::string& name = c.class_name;
  bool saturate = true;
  ValueRef y;
  if (name == "image.adjust_brightness") {
    y = Add(b, x, factor({"delta"}, 0));
  } else if (name == "image.adjust_contrast") {
    y = b.Op("AdjustContrastv2", {x, Scalar(b, DType::kFloat32, factor({"contrast_factor"}, 0))});
  } else if (name == "image.adjust_gamma") {
    const double gamma = factor({"gamma"}, 1), gain = factor({"gain"}, 1);
    y = Mul(b, b.Op("Pow", {x, Scalar(b, b.dtype(x), gamma)}), gain);
  } else {
    saturate = false;
    const bool hue = name == "image.adjust_hue";
    const double number = hue ? factor({"delta"}, 0) : factor({"saturation_factor"}, 0);
    y = b.Op(hue ? "AdjustHue" : "AdjustSaturation", {x, Scalar(b, DType::kFloat32, number)});
  }
  return Converted(c, y, b.dtype(image), saturate);
}

KValue Standardise(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Cast(b, ImageOf(c), DType::kFloat32);
  const int rank = Rank(b, x);
  if (!b.ok() || rank < 3) {
    c.Fail("an image is needed");
    return {};
  }
  const std::vector<int64_t> axes{rank - 3, rank - 2, rank - 1};
  double pixels = 1;
  for (const int64_t axis : axes)
    pixels *= static_cast<double>(SizeOf(b, x, static_cast<int>(axis), "the size of an image"));
  const ValueRef mean = Reduce(b, "Mean", x, axes, true), away = Sub(b, x, mean);
  const ValueRef deviation = b.Op("Sqrt", {Reduce(b, "Mean", b.Op("Square", {away}), axes, true)});
  const ValueRef least = Scalar(b, DType::kFloat32, 1 / std::sqrt(pixels));
  return b.Op("RealDiv", {away, b.Op("Maximum", {deviation, least})});
}

// The product of each pixel with a matrix of as many rows as it has channels.
ValueRef Mixed(GraphBuilder& b, ValueRef x, const std::vector<float>& matrix, int64_t channels) {
  const ValueRef weights =
      Reshape(b, b.Const(Tensor::Vector(DType::kFloat32, matrix)), {3, channels});
  return MatrixProduct(b, x, Cast(b, weights, b.dtype(x)));
}

KValue Grayscale(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = ImageOf(c);
  const bool last = TextOption(c, {"data_format"}, "channels_last") == "channels_last";
  const int rank = Rank(b, x);
  if (!b.ok()) return {};
  const int channel = last ? -1 : -3;
  const int64_t channels = SizeOf(b, x, channel, "the number of channels");
  if (IsKeras3(c) && channels == 1) return x;
  if (channels != 3 || rank < 3) return c.Refuse(absl::StrCat(channels, " channels"));
  const DType dtype = b.dtype(x);
  ValueRef y =
      IsKeras3(c) ? Cast(b, x, FloatingType(dtype)) : Converted(c, x, DType::kFloat32, false);
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (!last) std::rotate(order.end() - 3, order.end() - 2, order.end());
  if (!last) y = Transpose(b, y, order);
  y = Mixed(b, y, {0.2989F, 0.5870F, 0.1140F}, 1);
  if (!last) {
    for (int k = 0; k < rank; ++k) order[k] = k;
    std::rotate(order.end() - 3, order.end() - 1, order.end());
    y = Transpose(b, y, order);
  }
  return IsKeras3(c) ? Cast(b, y, dtype) : Converted(c, y, dtype, false);
}

KValue FromGrayscale(LayerContext& c) {
  const ValueRef x = ImageOf(c);
  if (SizeOf(c.b, x, -1, "the number of channels") != 1) c.Fail("one channel is needed");
  const int rank = Rank(c.b, x);
  return c.b.ok() ? KValue(Concat(c.b, {x, x, x}, rank - 1)) : KValue();
}

KValue ColourMatrix(LayerContext& c) {
  static const std::map<std::string, std::vector<float>> matrices{
      {"image.rgb_to_yuv",
       {0.299F, -0.14714119F, 0.61497538F, 0.587F, -0.28886916F, -0.51496512F, 0.114F, 0.43601035F,
        -0.10001026F}},
      {"image.yuv_to_rgb", {1, 1, 1, 0, -0.394642334F, 2.03206185F, 1.13988303F, -0.58062185F, 0}},
      {"image.rgb_to_yiq",
       {0.299F, 0.59590059F, 0.2115F, 0.587F, -0.27455667F, -0.52273617F, 0.114F, -0.32134392F,
        0.31119955F}},
      {"image.yiq_to_rgb",
       {1, 1, 1, 0.95598634F, -0.27201283F, -1.10674021F, 0.6208248F, -0.64720424F, 1.70423049F}}};
  const auto found = matrices.find(c.class_name);
  if (found == matrices.end()) return c.Refuse("this function");
  return Mixed(c.b, ImageOf(c), found->second, 3);
}

KValue Hsv(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool last = TextOption(c, {"data_format"}, "channels_last") == "channels_last";
  ValueRef x = ImageOf(c);
  const bool alone = Rank(b, x) == 3 && !last;
  if (alone) x = ExpandDims(b, x, 0);
  const bool back = OperationName(c) == "HSVToRGB";
  const ValueRef y = b.Op(back ? "HSVToRGB" : "RGBToHSV", {ChannelsToLast(b, x, last)});
  const ValueRef out = ChannelsFromLast(b, y, last);
  return alone ? Squeeze(b, out, {0}) : out;
}

KValue Gradients(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = ImageOf(c);
  if (b.ok() && Rank(b, x) != 4) c.Fail("a batch of images is needed");
  const auto along = [&](int axis) {
    const ValueRef next = Slice(b, x, axis, 1, build::kToEnd);
    const ValueRef these = Slice(b, x, axis, 0, -1);
    std::vector<std::pair<int64_t, int64_t>> pads(4);
    pads[axis] = {0, 1};
    return Pad(b, Sub(b, next, these), pads);
  };
  return std::vector<KValue>{along(1), along(2)};
}

const OperationRegistrar kColours[] = {
    {"RGBToGrayscale", {"image.rgb_to_grayscale"}, Grayscale},
    {"RGBToHSV", {"image.rgb_to_hsv"}, Hsv},
    {"HSVToRGB", {"image.hsv_to_rgb"}, Hsv},
    {"", {"image.grayscale_to_rgb"}, FromGrayscale},
    {"",
     {"image.rgb_to_yuv", "image.yuv_to_rgb", "image.rgb_to_yiq", "image.yiq_to_rgb"},
     ColourMatrix},
    {"", {"image.per_image_standardization"}, Standardise},
    {"",
     {"image.adjust_brightness", "image.adjust_contrast", "image.adjust_gamma", "image.adjust_hue",
      "image.adjust_saturation"},
     Adjust},
    {"", {"image.convert_image_dtype"}, ConvertDtype},
    {"", {"image.image_gradients"}, Gradients}};

}  // namespace
}  // namespace floe::keras
