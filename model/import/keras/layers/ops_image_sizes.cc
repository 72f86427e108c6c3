// Operations that crop, pad, turn and filter images.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/import/keras/images.h"
#include "model/import/keras/operation.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

// A batch of images with channels last, of one image or several.
struct Images {
  ValueRef x;
  bool alone = false, last = true;
};

Images ImagesOf(LayerContext& c) {
  GraphBuilder& b = c.b;
  Images images;
  images.last = TextOption(c, {"data_format"}, "channels_last") == "channels_last";
  ValueRef x = TensorAt(c, 0, {"images", "image"});
  const int rank = Rank(b, x);
  if (b.ok() && rank != 3 && rank != 4)
    c.Fail(absl::StrCat("the input is ", b.shape(x).ToString(), ", expected images"));
  images.alone = rank == 3;
  if (images.alone) x = ExpandDims(b, x, 0);
  images.x = ChannelsToLast(b, x, images.last);
  return images;
}

ValueRef SizedBack(LayerContext& c, const Images& images, ValueRef y) {
  y = ChannelsFromLast(c.b, y, images.last);
  return images.alone ? Squeeze(c.b, y, {0}) : y;
}

int64_t Height(LayerContext& c, ValueRef x) { return SizeOf(c.b, x, 1, "the height"); }
int64_t Width(LayerContext& c, ValueRef x) { return SizeOf(c.b, x, 2, "the width"); }

ValueRef Cut(LayerContext& c, ValueRef x, int64_t top, int64_t left, int64_t height,
             int64_t width) {
  const int64_t h = Height(c, x), w = Width(c, x);
  if (top < 0 || left < 0 || height < 1 || width < 1 || top > h || left > w || height > h - top ||
      width > w - left)
    c.Fail(absl::StrCat("a part of ", height, " x ", width, " at ", top, ", ", left, " of ", h,
                        " x ", w));
  if (!c.b.ok()) return {};
  if (height != h) x = Slice(c.b, x, 1, top, top + height);
  return width == w ? x : Slice(c.b, x, 2, left, left + width);
}

ValueRef Padded(LayerContext& c, ValueRef x, int64_t top, int64_t left, int64_t height,
                int64_t width) {
  const int64_t h = Height(c, x), w = Width(c, x);
  constexpr int64_t kMost = 1 << 24;
  if (top < 0 || left < 0 || height > kMost || width > kMost || height - top < h ||
      width - left < w)
    c.Fail(absl::StrCat("a frame of ", height, " x ", width, " around ", h, " x ", w));
  if (!c.b.ok()) return {};
  return Pad(c.b, x, {{0, 0}, {top, height - top - h}, {left, width - left - w}, {0, 0}});
}

// What is not said of begin and end of one axis follows from the size wanted; null: not said.
struct Span {
  int64_t begin = 0, wanted = 0;
};

// `sign` is 1 where margins are added to the image and -1 where they are cut off.
Span SpanOf(LayerContext& c, int64_t size, int sign, const char* before, const char* after,
            const char* target) {
  const bool no_begin = Option(c, {before}).is_null(), no_end = Option(c, {after}).is_null();
  int64_t begin = IntOption(c, {before}, 0), end = IntOption(c, {after}, 0);
  const int64_t wanted = IntOption(c, {target}, size + sign * (begin + end));
  const int64_t most = 1 << 24;
  for (const int64_t n : {begin, end, wanted}) {
    if (n < -most || n > most) c.Fail(absl::StrCat("a size of ", n));
  }
  if (!c.b.ok()) return {};
  const int64_t margins = sign * (wanted - size);
  if (no_begin) begin = margins - end;
  if (no_end) end = margins - begin;
  return {begin, size + sign * (begin + end)};
}

KValue PadImages(LayerContext& c) {
  const Images images = ImagesOf(c);
  if (!c.b.ok()) return {};
  const Span y =
      SpanOf(c, Height(c, images.x), 1, "top_padding", "bottom_padding", "target_height");
  const Span x = SpanOf(c, Width(c, images.x), 1, "left_padding", "right_padding", "target_width");
  return SizedBack(c, images, Padded(c, images.x, y.begin, x.begin, y.wanted, x.wanted));
}

KValue CropImages(LayerContext& c) {
  const Images images = ImagesOf(c);
  if (!c.b.ok()) return {};
  const Span y =
      SpanOf(c, Height(c, images.x), -1, "top_cropping", "bottom_cropping", "target_height");
  const Span x =
      SpanOf(c, Width(c, images.x), -1, "left_cropping", "right_cropping", "target_width");
  return SizedBack(c, images, Cut(c, images.x, y.begin, x.begin, y.wanted, x.wanted));
}

KValue BoundingBox(LayerContext& c) {
  const Images images = ImagesOf(c);
  const int64_t top = IntOption(c, {"offset_height"}, 0), left = IntOption(c, {"offset_width"}, 0);
  const int64_t height = IntOption(c, {"target_height"}, 0),
                width = IntOption(c, {"target_width"}, 0);
  if (!c.b.ok()) return {};
  const bool crop = c.class_name == "image.crop_to_bounding_box";
  return SizedBack(c, images,
                   crop ? Cut(c, images.x, top, left, height, width)
                        : Padded(c, images.x, top, left, height, width));
}

KValue CentralCrop(LayerContext& c) {
  const Images images = ImagesOf(c);
  const double fraction = NumberOption(c, {"central_fraction"}, 1);
  if (!(fraction > 0 && fraction <= 1)) c.Fail(absl::StrCat("central_fraction is ", fraction));
  if (!c.b.ok()) return {};
  const int64_t h = Height(c, images.x), w = Width(c, images.x);
  const auto margin = [&](int64_t size) {
    const auto whole = static_cast<double>(size);
    return static_cast<int64_t>((whole - whole * fraction) / 2);
  };
  const int64_t top = margin(h), left = margin(w);
  return SizedBack(c, images, Cut(c, images.x, top, left, h - 2 * top, w - 2 * left));
}

KValue CropOrPad(LayerContext& c) {
  const Images images = ImagesOf(c);
  const int64_t height = IntOption(c, {"target_height"}, 0),
                width = IntOption(c, {"target_width"}, 0);
  if (!c.b.ok()) return {};
  const int64_t h = Height(c, images.x), w = Width(c, images.x);
  const ValueRef cut =
      Cut(c, images.x, std::max<int64_t>((h - height) / 2, 0),
          std::max<int64_t>((w - width) / 2, 0), std::min(h, height), std::min(w, width));
  if (!c.b.ok()) return {};
  return SizedBack(c, images,
                   Padded(c, cut, std::max<int64_t>((height - h) / 2, 0),
                          std::max<int64_t>((width - w) / 2, 0), height, width));
}

KValue ResizeWithPad(LayerContext& c) {
  const Images images = ImagesOf(c);
  const int64_t height = IntOption(c, {"target_height"}, 0),
                width = IntOption(c, {"target_width"}, 0);
  const std::string way = TextOption(c, {"method"}, "bilinear");
  const bool antialias = BoolOption(c, {"antialias"}, false);
  if (height < 1 || width < 1) c.Fail("no size");
  if (!c.b.ok()) return {};
  const auto h = static_cast<float>(Height(c, images.x)),
             w = static_cast<float>(Width(c, images.x));
  const auto th = static_cast<float>(height), tw = static_cast<float>(width);
  const float ratio = std::max(w / tw, h / th), rh = h / ratio, rw = w / ratio;
  const auto inside = [](float size) { return static_cast<int64_t>(std::floor(size)); };
  ValueRef x = images.x;
  if (way != "nearest" && !Floating(c.b, x)) x = Cast(c.b, x, DType::kFloat32);
  const ValueRef resized = ResizeImages(c, x, inside(rh), inside(rw), way, antialias);
  if (!c.b.ok()) return {};
  return SizedBack(c, images,
                   Padded(c, resized, std::max<int64_t>(inside((th - rh) / 2), 0),
                          std::max<int64_t>(inside((tw - rw) / 2), 0), height, width));
}

// Flips and turns: what becomes of the two axes of an image.
KValue Turn(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Images images = ImagesOf(c);
  const std::string& name = c.class_name;
  int64_t k = name == "image.rot90" ? IntOption(c, {"k"}, 1) % 4 : 0;
  if (k < 0) k += 4;
  std::vector<int64_t> reversed;
  if (name == "image.flip_left_right") reversed = {2};
  if (name == "image.flip_up_down") reversed = {1};
  if (k == 1) reversed = {2};
  if (k == 2) reversed = {1, 2};
  if (k == 3) reversed = {1};
  ValueRef y = images.x;
  if (!reversed.empty()) y = b.Op("ReverseV2", {y, Ints(b, reversed)});
  if (name == "image.transpose" || k == 1 || k == 3) y = Transpose(b, y, {0, 2, 1, 3});
  return SizedBack(c, images, y);
}

// ---- filters ----

// Each channel convolved with kernels of one channel, [height, width, 1, many].
ValueRef Filtered(LayerContext& c, ValueRef x, const std::vector<float>& numbers, int64_t height,
                  int64_t width, int64_t many, const std::string& padding) {
  GraphBuilder& b = c.b;
  const int64_t channels = SizeOf(b, x, -1, "the number of channels");
  if (!b.ok() || channels > 4096) return {};
  std::vector<float> all;
  for (int64_t p = 0; p < height * width; ++p) {
    for (int64_t k = 0; k < channels; ++k)
      all.insert(all.end(), numbers.begin() + p * many, numbers.begin() + (p + 1) * many);
  }
  const ValueRef kernel =
      Reshape(b, b.Const(Tensor::Vector(DType::kFloat32, all)), {height, width, channels, many});
  return b.Op("DepthwiseConv2dNative", {x, Cast(b, kernel, b.dtype(x))},
              {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
               {"dilations", std::vector<int64_t>{1, 1, 1, 1}},
               {"padding", padding},
               {"data_format", std::string("NHWC")}});
}

KValue GaussianBlur(LayerContext& c) {
  const Images images = ImagesOf(c);
  std::vector<int64_t> size = IntOptions(c, {"kernel_size"});
  const Json& sigmas = Option(c, {"sigma"});
  if (size.empty()) size = {3, 3};
  std::vector<float> sigma;
  for (size_t k = 0; sigmas.is_array() && k < sigmas.size(); ++k) {
    if (sigmas[k].is_number()) sigma.push_back(sigmas[k].get<float>());
  }
  if (sigmas.is_null()) sigma = {1, 1};
  if (size.size() != 2 || sigma.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > 256 ||
      size[1] > 256)
    c.Fail("kernel_size and sigma are two numbers each");
  if (!c.b.ok()) return {};
  const auto bell = [&](int k) {
    std::vector<float> numbers;
    float sum = 0;
    for (int64_t i = 0; i < size[k]; ++i) {
      const float x = static_cast<float>(i) - static_cast<float>(size[k] - 1) / 2;
      numbers.push_back(std::exp(-0.5F * (x / sigma[k]) * (x / sigma[k])));
      sum += numbers.back();
    }
    for (float& number : numbers) number /= sum;
    return numbers;
  };
  // Keras reads the outer product of the second by the first in the shape of `size`.
  const std::vector<float> first = bell(0), second = bell(1);
  std::vector<float> kernel;
  for (const float s : second) {
    for (const float f : first) kernel.push_back(s * f);
  }
  return SizedBack(c, images, Filtered(c, images.x, kernel, size[0], size[1], 1, "SAME"));
}

KValue SobelEdges(LayerContext& c) {
  GraphBuilder& b = c.b;
  const Images images = ImagesOf(c);
  if (images.alone) c.Fail("a batch of images is needed");
  if (!b.ok()) return {};
  const int64_t channels = SizeOf(b, images.x, 3, "the number of channels");
  const Tensor pads = Tensor::Vector(DType::kInt32, std::vector<int32_t>{0, 0, 1, 1, 1, 1, 0, 0});
  const ValueRef around = b.Op("MirrorPad", {images.x, b.Const(pads.Reshaped({4, 2}))},
                               {{"mode", std::string("REFLECT")}});
  SymShape padded = b.shape(images.x);
  for (const int k : {1, 2}) {
    const Dim size = padded.dim(k);
    padded.set_dim(k, size.concrete() ? Dim(size.size() + 2) : Dim::Unknown());
  }
  b.Refine(around, padded);
  const std::vector<float> kernels{-1, -1, -2, 0, -1, 1, 0, -2, 0, 0, 0, 2, 1, -1, 2, 0, 1, 1};
  const ValueRef y = Filtered(c, around, kernels, 3, 3, 2, "VALID");
  const ValueRef edges = Reshape(
      b, y, {DimOf(b, images.x, 0), DimOf(b, images.x, 1), DimOf(b, images.x, 2), channels, 2});
  return images.last ? edges : Transpose(b, edges, {0, 3, 1, 2, 4});
}

const OperationRegistrar kSizes[] = {
    {"PadImages", {}, PadImages},
    {"CropImages", {}, CropImages},
    {"", {"image.crop_to_bounding_box", "image.pad_to_bounding_box"}, BoundingBox},
    {"", {"image.central_crop"}, CentralCrop},
    {"", {"image.resize_with_crop_or_pad", "image.resize_image_with_crop_or_pad"}, CropOrPad},
    {"", {"image.resize_with_pad"}, ResizeWithPad},
    {"", {"image.flip_left_right", "image.flip_up_down", "image.rot90", "image.transpose"}, Turn},
    {"GaussianBlur", {}, GaussianBlur},
    {"SobelEdges", {"image.sobel_edges"}, SobelEdges}};

}  // namespace
}  // namespace floe::keras
