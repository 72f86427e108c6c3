// Image layers: Rescaling, Normalization, Resizing, CenterCrop, AutoContrast, and augmentation,
// which changes nothing at inference.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/constants.h"
#include "model/import/keras/images.h"
#include "model/import/keras/windows.h"

namespace floe::keras {

namespace {

// Whole numbers are rounded and kept in the range of their type, as Keras 3 does.
ValueRef RoundedTo(GraphBuilder& b, ValueRef x, DType dtype) {
  const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16;
  if (!IsInteger(dtype)) return Cast(b, x, dtype);
  if (DTypeSize(dtype) > 2) return Cast(b, b.Op("Round", {x}), dtype);
  const double bits = 8.0 * static_cast<double>(DTypeSize(dtype)) - (is_signed ? 1 : 0);
  const double most = std::pow(2.0, bits) - 1;
  const ValueRef low = Scalar(b, b.dtype(x), is_signed ? -most - 1 : 0);
  const ValueRef rounded = b.Op("Round", {x});
  return Cast(b, b.Op("Maximum", {b.Op("Minimum", {rounded, Scalar(b, b.dtype(x), most)}), low}),
              dtype);
}

}  // namespace

ValueRef ResizeImages(LayerContext& c, ValueRef images, int64_t height, int64_t width,
                      const std::string& way, bool antialias) {
  GraphBuilder& b = c.b;
  if (height < 1 || width < 1 || height > (1 << 24) || width > (1 << 24)) {
    c.Fail(absl::StrCat("a size of ", height, " and ", width));
    return {};
  }
  const DType dtype = b.dtype(images);
  const ValueRef size = Ints(b, {height, width});
  const Attributes centers{{"half_pixel_centers", true}, {"align_corners", false}};
  if (way == "nearest") return b.Op("ResizeNearestNeighbor", {images, size}, centers);
  if (way == "area") return RoundedTo(b, b.Op("ResizeArea", {images, size}), dtype);
  if (!antialias && (way == "bilinear" || way == "bicubic"))
    return RoundedTo(
        b, b.Op(way == "bilinear" ? "ResizeBilinear" : "ResizeBicubic", {images, size}, centers),
        dtype);
  std::string kernel = way;
  if (way == "bilinear") kernel = "triangle";
  if (way == "bicubic") kernel = "keyscubic";
  const auto in_height = static_cast<float>(SizeOf(b, images, 1, "the height"));
  const auto in_width = static_cast<float>(SizeOf(b, images, 2, "the width"));
  const std::vector<float> scale{static_cast<float>(height) / in_height,
                                 static_cast<float>(width) / in_width};
  const ValueRef resized =
      b.Op("ScaleAndTranslate",
           {Cast(b, images, DType::kFloat32), size, b.Const(Tensor::Vector(DType::kFloat32, scale)),
            b.Const(Tensor::Vector(DType::kFloat32, std::vector<float>{0, 0}))},
           {{"kernel_type", kernel}, {"antialias", antialias}});
  return RoundedTo(b, resized, dtype);
}

namespace {

struct Part {
  int64_t height, width;
};

// The size that has the proportions wanted, inside (`most` false) or around an image.
Part Proportional(LayerContext& c, ValueRef images, int64_t height, int64_t width, bool around) {
  const int64_t h = SizeOf(c.b, images, 1, "the height"), w = SizeOf(c.b, images, 2, "the width");
  const auto scaled = [](int64_t a, int64_t n, int64_t d) {
    return static_cast<int64_t>(static_cast<float>(a * n) / static_cast<float>(d));
  };
  if (height < 1 || width < 1 || height > (1 << 24) || width > (1 << 24)) {
    c.Fail(absl::StrCat("a size of ", height, " and ", width));
    return {1, 1};
  }
  const int64_t other_h = scaled(w, height, width), other_w = scaled(h, width, height);
  if (around) return {std::max(h, other_h), std::max(w, other_w)};
  return {std::max<int64_t>(std::min(h, other_h), 1), std::max<int64_t>(std::min(w, other_w), 1)};
}

ValueRef Middle(LayerContext& c, ValueRef images, int64_t height, int64_t width) {
  GraphBuilder& b = c.b;
  const int64_t h = SizeOf(b, images, 1, "the height"), w = SizeOf(b, images, 2, "the width");
  const int64_t top = (h - height) / 2, left = (w - width) / 2;
  if (height != h) images = Slice(b, images, 1, top, top + height);
  if (width != w) images = Slice(b, images, 2, left, left + width);
  return images;
}

}  // namespace

ValueRef CropToAspect(LayerContext& c, ValueRef images, int64_t height, int64_t width) {
  const Part part = Proportional(c, images, height, width, false);
  return Middle(c, images, part.height, part.width);
}

ValueRef PadToAspect(LayerContext& c, ValueRef images, int64_t height, int64_t width,
                     double value) {
  GraphBuilder& b = c.b;
  const Part part = Proportional(c, images, height, width, true);
  const int64_t top = (part.height - SizeOf(b, images, 1, "the height")) / 2,
                left = (part.width - SizeOf(b, images, 2, "the width")) / 2;
  return Pad(b, images, {{0, 0}, {top, top}, {left, left}, {0, 0}}, value);
}

namespace {

// A number, a list or an array of the options.
ValueRef Numbers(LayerContext& c, const std::string& option, double otherwise, DType dtype) {
  GraphBuilder& b = c.b;
  const Json& value = c.config.At(option);
  if (value.is_null()) return Scalar(b, dtype, otherwise);
  const absl::StatusOr<Constant> numbers = ConstantOf(value);
  if (!numbers.ok()) {
    b.Fail(Annotate(numbers.status(), option));
    return {};
  }
  return Cast(b, b.Const(numbers->tensor), dtype);
}

KValue Rescaling(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Cast(b, c.In(), c.compute_dtype);
  return Add(b, Mul(b, x, Numbers(c, "scale", 1, c.compute_dtype)),
             Numbers(c, "offset", 0, c.compute_dtype));
}

// Mean or variance over the axes that are kept, in a shape that broadcasts with the input.
ValueRef Statistic(LayerContext& c, const std::string& option, int index, ValueRef x) {
  GraphBuilder& b = c.b;
  const int rank = Rank(b, x);
  std::vector<int64_t> axes =
      c.config.Has("axis") ? c.config.Ints("axis", -1, {-1}) : std::vector<int64_t>();
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  const ValueRef v =
      c.config.Has(option) ? Numbers(c, option, 0, c.compute_dtype) : c.Weight(index);
  if (!b.ok() || (c.config.Has(option) && Rank(b, v) == 0)) return v;
  std::vector<WantedDim> dims;
  for (int k = 0; k < rank; ++k) {
    const bool kept = std::find(axes.begin(), axes.end(), k) != axes.end();
    dims.push_back(kept ? WantedDim(SizeOf(b, x, k, "an axis that is kept")) : WantedDim(1));
  }
  return Reshape(b, v, dims);
}

KValue Normalization(LayerContext& c) {
  GraphBuilder& b = c.b;
  const ValueRef x = Cast(b, c.In(), c.compute_dtype);
  const ValueRef mean = Statistic(c, "mean", 0, x);
  const ValueRef deviation = b.Op("Maximum", {b.Op("Sqrt", {Statistic(c, "variance", 1, x)}),
                                              Scalar(b, c.compute_dtype, 1e-7)});
  if (c.config.Bool("invert", false)) return Add(b, mean, Mul(b, x, deviation));
  return b.Op("RealDiv", {Sub(b, x, mean), deviation});
}

KValue Resizing(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool last = c.ChannelsLast();
  ValueRef x = ChannelsToLast(b, c.In(), last);
  // Keras 3 answers whole numbers in their own type.
  if (c.keras2()) x = Cast(b, x, c.compute_dtype);
  const int64_t height = c.config.Int("height", 1), width = c.config.Int("width", 1);
  if (b.ok() && Rank(b, x) != 4) c.Fail("images with a batch are needed");
  if (c.config.Bool("crop_to_aspect_ratio", false)) x = CropToAspect(c, x, height, width);
  const double fill = c.config.Number("fill_value", 0);
  const std::string mode = c.config.String("fill_mode", "constant");
  if (c.config.Bool("pad_to_aspect_ratio", false)) {
    if (mode != "constant") return c.Refuse(absl::StrCat("fill_mode ", Quoted(mode)));
    x = PadToAspect(c, x, height, width, fill);
  }
  const ValueRef y = ResizeImages(c, x, height, width, c.config.String("interpolation", "bilinear"),
                                  c.config.Bool("antialias", false));
  return ChannelsFromLast(b, y, last);
}

// The middle where the image is large enough, else the largest part, resized.
KValue CenterCrop(LayerContext& c) {
  GraphBuilder& b = c.b;
  const bool last = c.ChannelsLast(), random = c.class_name == "RandomCrop";
  ValueRef x = Cast(b, ChannelsToLast(b, c.In(), last), c.compute_dtype);
  const int64_t height = c.config.Int("height", 1), width = c.config.Int("width", 1);
  if (b.ok() && Rank(b, x) != 4) c.Fail("images with a batch are needed");
  const int64_t h = SizeOf(b, x, 1, "the height"), w = SizeOf(b, x, 2, "the width");
  if (!random && h >= height && w >= width && height > 0 && width > 0) {
    x = Middle(c, x, height, width);
  } else {
    x = ResizeImages(c, CropToAspect(c, x, height, width), height, width, "bilinear");
  }
  return ChannelsFromLast(b, x, last);
}

// What these do in training is all that their options say.
KValue Augmentation(LayerContext& c) {
  c.config.Ignore({"alpha",
                   "auto_vectorize",
                   "bounding_box_format",
                   "brightness_factor",
                   "contrast_factor",
                   "data_format",
                   "factor",
                   "fill_mode",
                   "fill_value",
                   "height",
                   "height_factor",
                   "hue_factor",
                   "interpolation",
                   "kernel_size",
                   "max_x_factor",
                   "max_y_factor",
                   "mode",
                   "num_chain",
                   "num_ops",
                   "rate",
                   "saturation_factor",
                   "scale",
                   "sigma",
                   "value_range",
                   "width",
                   "width_factor",
                   "x_factor",
                   "y_factor",
                   "zoom_factor",
                   "addition_factor",
                   "threshold_factor",
                   "chain_depth",
                   "num_chains",
                   "ratio",
                   "bins",
                   "magnitude",
                   "cutout_factor",
                   "all_ops",
                   "random_order"});
  if (!c.First().is_tensor()) return c.First();
  return Cast(c.b, c.In(), c.compute_dtype);
}

const LayerRegistrar kRescaling({"Rescaling"}, Rescaling, Masks::kPassInKeras3);
const LayerRegistrar kNormalization({"Normalization"}, Normalization, Masks::kPassInKeras3);
const LayerRegistrar kResizing({"Resizing"}, Resizing);
// Keras 2 brings images to the size at inference too.
KValue RandomCrop(LayerContext& c) { return c.keras2() ? CenterCrop(c) : Augmentation(c); }

// Images of [low, high] brought to [0, 255] where `to`, else back.
ValueRef Ranged(LayerContext& c, ValueRef x, bool to) {
  std::vector<float> range = c.config.Floats("value_range");
  if (range.empty()) range = {0, 255};
  if (range.size() != 2 || range[0] >= range[1]) {
    c.Fail("value_range is not two numbers");
    return x;
  }
  if (range[0] == 0 && range[1] == 255) return x;
  const double width = static_cast<double>(range[1]) - range[0];
  GraphBuilder& b = c.b;
  if (to) return Mul(b, b.Op("RealDiv", {Add(b, x, -range[0]), Scalar(b, b.dtype(x), width)}), 255);
  return Add(b, Mul(b, b.Op("RealDiv", {x, Scalar(b, b.dtype(x), 255)}), width), range[0]);
}

// Each channel of an image is stretched over the whole range; one of equal pixels stays.
KValue AutoContrast(LayerContext& c) {
  GraphBuilder& b = c.b;
  c.config.Ignore({"data_format", "factor", "bounding_box_format"});  // which Keras does not read
  const ValueRef images = Cast(b, c.In(), c.compute_dtype);
  if (b.ok() && Rank(b, images) != 4) c.Fail("images with a batch are needed");
  const ValueRef x = Ranged(c, images, true), low = Reduce(b, "Min", x, {1, 2}, true),
                 high = Reduce(b, "Max", x, {1, 2}, true);
  const ValueRef scale = b.Op("RealDiv", {Scalar(b, b.dtype(x), 255), Sub(b, high, low)});
  const ValueRef stretched = Add(b, Mul(b, x, scale), Mul(b, b.Op("Neg", {low}), scale));
  const ValueRef clipped =
      b.Op("ClipByValue", {stretched, Scalar(b, b.dtype(x), 0), Scalar(b, b.dtype(x), 255)});
  const ValueRef y = Ranged(c, clipped, false);
  return b.Op("SelectV2", {b.Op("IsNan", {y}), images, y});
}

const LayerRegistrar kContrast({"AutoContrast"}, AutoContrast);
const LayerRegistrar kCrop({"CenterCrop"}, CenterCrop);
const LayerRegistrar kRandomCrop({"RandomCrop"}, RandomCrop);
const LayerRegistrar kRandom({"AugMix",
                              "CutMix",
                              "Equalization",
                              "MixUp",
                              "RandAugment",
                              "RandomBrightness",
                              "RandomColorDegeneration",
                              "RandomColorJitter",
                              "RandomContrast",
                              "RandomElasticTransform",
                              "RandomErasing",
                              "RandomFlip",
                              "RandomGaussianBlur",
                              "RandomGrayscale",
                              "RandomHeight",
                              "RandomHue",
                              "RandomInvert",
                              "RandomPerspective",
                              "RandomPosterization",
                              "RandomRotation",
                              "RandomSaturation",
                              "RandomSharpness",
                              "RandomShear",
                              "RandomTranslation",
                              "RandomWidth",
                              "RandomZoom",
                              "Solarization"},
                             Augmentation);

}  // namespace
}  // namespace floe::keras
