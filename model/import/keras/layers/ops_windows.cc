// Operations on windows: convolutions and pooling, by the options of Keras 3 or of TensorFlow.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "model/import/keras/operation.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

const Names kInputs{"inputs", "input", "value", "x", "volumes"};

// The input with channels last; of one dim, with a height of one.
struct Frame {
  ValueRef x;
  int spatial = 1;
  bool last = true;
};

Frame FrameOf(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string format = TextOption(c, {"data_format"}, "channels_last");
  Frame f;
  f.last = format != "channels_first" && !absl::StartsWith(format, "NC");
  const ValueRef x = TensorAt(c, 0, kInputs);
  f.spatial = Rank(b, x) - 2;
  if (b.ok() && (f.spatial < 1 || f.spatial > 3))
    c.Fail(absl::StrCat("the input is ", b.shape(x).ToString(), ", expected 1 to 3 spatial dims"));
  f.spatial = std::clamp(f.spatial, 1, 3);
  f.x = ChannelsToLast(b, x, f.last);
  if (f.spatial == 1) f.x = ExpandDims(b, f.x, 1);
  return f;
}

ValueRef WindowBack(LayerContext& c, const Frame& f, ValueRef y) {
  if (f.spatial == 1) y = Squeeze(c.b, y, {1});
  return ChannelsFromLast(c.b, y, f.last);
}

// One number for each spatial dim; TensorFlow's lists have those of batch and channels too.
std::vector<int64_t> Spatial(LayerContext& c, const Frame& f, Names names,
                             const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> numbers = IntOptions(c, names);
  if (numbers.empty()) return otherwise;
  const size_t n = f.spatial;
  if (numbers.size() == 1) numbers.resize(n, numbers[0]);
  if (numbers.size() == n + 2) {
    const size_t channels = f.last ? n + 1 : 1;
    if (numbers[0] != 1 || numbers[channels] != 1)
      c.Fail(absl::StrCat(*names.begin(), " of batch or channels is not 1"));
    numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(channels));
    numbers.erase(numbers.begin());
  }
  if (numbers.size() != n)
    c.Fail(absl::StrCat(*names.begin(), " has ", numbers.size(), " numbers"));
  numbers.resize(n, 1);
  for (int64_t& number : numbers) {
    if (number >= 1 && number <= INT32_MAX) continue;
    c.Fail(absl::StrCat(*names.begin(), " has ", number));
    number = 1;
  }
  return numbers;
}

std::vector<int64_t> OnesFor(const Frame& f) { return std::vector<int64_t>(f.spatial, 1); }

std::vector<int64_t> Whole(const Frame& f, const std::vector<int64_t>& numbers) {
  std::vector<int64_t> all{1};
  if (f.spatial == 1) all.push_back(1);
  all.insert(all.end(), numbers.begin(), numbers.end());
  all.push_back(1);
  return all;
}

// `numbers`: those of an option that is a list were seen to.
std::string Padding(LayerContext& c, bool numbers = false) {
  const Json& option = Option(c, {"padding"});
  if (numbers && option.is_array()) return "VALID";
  std::string padding =
      option.is_string() ? absl::AsciiStrToUpper(option.get<std::string>()) : "VALID";
  if (!option.is_null() && !option.is_string()) {
    c.Refuse("padding in numbers");
  } else if (padding != "SAME" && padding != "VALID") {
    c.Fail(absl::StrCat("padding is ", Quoted(padding)));
  }
  return padding;
}

Attributes WindowAttributes(LayerContext& c, const Frame& f, const std::vector<int64_t>& strides,
                            bool numbers = false) {
  return {{"strides", Whole(f, strides)},
          {"padding", Padding(c, numbers)},
          {"data_format", std::string(f.spatial == 3 ? "NDHWC" : "NHWC")}};
}

ValueRef Pooled(LayerContext& c, const Frame& f, bool most, const std::vector<int64_t>& size,
                const std::vector<int64_t>& strides) {
  Attributes attrs = WindowAttributes(c, f, strides);
  attrs.emplace_back("ksize", Whole(f, size));
  const char* const three = f.spatial == 3 ? "3D" : "";
  return WindowBack(c, f, c.b.Op(absl::StrCat(most ? "MaxPool" : "AvgPool", three), {f.x}, attrs));
}

KValue PoolFunction(LayerContext& c) {
  const Frame f = FrameOf(c);
  if (!c.b.ok()) return {};
  const std::vector<int64_t> size = Spatial(c, f, {"pool_size", "ksize"}, {});
  if (size.empty()) c.Fail("no size of a window");
  if (!c.b.ok()) return {};
  const std::vector<int64_t> strides = Spatial(c, f, {"strides"}, size);
  return Pooled(c, f, OperationName(c) == "MaxPool", size, strides);
}

// tf.nn.pool
KValue AnyPool(LayerContext& c) {
  const Frame f = FrameOf(c);
  const std::string type = TextOption(c, {"pooling_type"}, "");
  if (type != "MAX" && type != "AVG") c.Fail(absl::StrCat("pooling_type is ", Quoted(type)));
  if (!c.b.ok()) return {};
  const std::vector<int64_t> size = Spatial(c, f, {"window_shape"}, OnesFor(f));
  const std::vector<int64_t> strides = Spatial(c, f, {"strides"}, OnesFor(f));
  if (Spatial(c, f, {"dilations"}, OnesFor(f)) != OnesFor(f))
    return c.Refuse("dilations of a pool");
  return Pooled(c, f, type == "MAX", size, strides);
}

ValueRef KernelAt(LayerContext& c, const Frame& f, int i, Names names) {
  const ValueRef kernel = Cast(c.b, TensorAt(c, i, names), c.b.dtype(f.x));
  if (c.b.ok() && Rank(c.b, kernel) != f.spatial + 2)
    c.Fail(absl::StrCat("its kernel is ", c.b.shape(kernel).ToString()));
  return f.spatial == 1 ? ExpandDims(c.b, kernel, 0) : kernel;
}

Attributes ConvAttributes(LayerContext& c, const Frame& f, bool numbers = false) {
  Attributes attrs =
      WindowAttributes(c, f, Spatial(c, f, {"strides", "stride"}, OnesFor(f)), numbers);
  attrs.emplace_back("dilations",
                     Whole(f, Spatial(c, f, {"dilation_rate", "dilations", "rate"}, OnesFor(f))));
  return attrs;
}

// Padding in numbers, two for each dim of the input, is done before.
void PadBefore(LayerContext& c, Frame* f) {
  const Json& option = Option(c, {"padding"});
  if (!option.is_array()) return;
  const size_t n = f->spatial + 2;
  std::vector<std::pair<int64_t, int64_t>> pads{{0, 0}};
  if (f->spatial == 1) pads.emplace_back(0, 0);
  for (size_t k = 0; k < n; ++k) {
    int64_t before = 0, after = 0;
    const Json* const pair = k < option.size() ? Items(option[k]) : nullptr;
    if (pair == nullptr || pair->size() != 2 || !ToInt((*pair)[0], &before) ||
        !ToInt((*pair)[1], &after)) {
      c.Fail("padding has other items than pairs of numbers");
      return;
    }
    const bool spatial = k > 0 && k != (f->last ? n - 1 : 1);
    if (!spatial && (before != 0 || after != 0)) c.Fail("padding of batch or channels");
    if (spatial) pads.emplace_back(before, after);
  }
  pads.emplace_back(0, 0);
  f->x = Pad(c.b, f->x, pads);
}

KValue ConvFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  Frame f = FrameOf(c);
  if (!b.ok()) return {};
  PadBefore(c, &f);
  BoolOption(c, {"use_cudnn_on_gpu"}, true);  // a kernel of another device
  const ValueRef kernel = KernelAt(c, f, 1, {"kernel", "filters", "filter"});
  const bool three = f.spatial == 3;
  if (three && SizeOf(b, f.x, -1, "the channels") != SizeOf(b, kernel, -2, "a kernel"))
    return c.Refuse("groups of three dims");
  return WindowBack(c, f,
                    b.Op(three ? "Conv3D" : "Conv2D", {f.x, kernel}, ConvAttributes(c, f, true)));
}

ValueRef DepthwiseFunction(LayerContext& c, const Frame& f, Names kernels) {
  if (f.spatial == 3) c.Fail("a depthwise convolution over three dims");
  if (!c.b.ok()) return {};
  const ValueRef kernel = KernelAt(c, f, 1, kernels);
  return c.b.Op("DepthwiseConv2dNative", {f.x, kernel}, ConvAttributes(c, f));
}

KValue DepthwiseConvFunction(LayerContext& c) {
  const Frame f = FrameOf(c);
  return WindowBack(c, f, DepthwiseFunction(c, f, {"kernel", "filter"}));
}

KValue SeparableConvFunction(LayerContext& c) {
  const Frame f = FrameOf(c);
  const ValueRef y = DepthwiseFunction(c, f, {"depthwise_kernel", "depthwise_filter"});
  if (!c.b.ok()) return {};
  const ValueRef points = KernelAt(c, f, 2, {"pointwise_kernel", "pointwise_filter"});
  return WindowBack(c, f,
                    c.b.Op("Conv2D", {y, points},
                           {{"strides", Whole(f, OnesFor(f))},
                            {"dilations", Whole(f, OnesFor(f))},
                            {"padding", std::string("VALID")},
                            {"data_format", std::string("NHWC")}}));
}

// The identity as a kernel: what each window holds becomes channels.
KValue ExtractPatches(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::vector<int64_t> sizes = IntOptions(c, {"size"});
  const std::string format = TextOption(c, {"data_format"}, "channels_last");
  const bool last = format == "channels_last";
  ValueRef x = TensorAt(c, 0, {"images", "volumes"});
  if (!b.ok()) return {};
  Frame f;
  f.last = last;
  f.spatial = sizes.size() == 3 ? 3 : 2;
  const bool alone = Rank(b, x) == f.spatial + 1;
  if (alone) x = ExpandDims(b, x, 0);
  if (b.ok() && Rank(b, x) != f.spatial + 2)
    c.Fail(absl::StrCat("the input is ", b.shape(x).ToString()));
  f.x = ChannelsToLast(b, x, last);
  const std::vector<int64_t> size = Spatial(c, f, {"size"}, OnesFor(f));
  const int64_t channels = SizeOf(b, f.x, -1, "the number of channels");
  int64_t all = channels;
  std::vector<int64_t> dims;
  for (const int64_t n : size) {
    all = n > 4096 || all > 4096 ? 4097 : all * n;
    dims.push_back(n);
  }
  // An identity of more is past what such a kernel is for.
  if (all > 4096) return c.Refuse("patches of more than 4096 numbers");
  if (!b.ok()) return {};
  std::vector<float> identity(static_cast<size_t>(all * all), 0);
  for (int64_t k = 0; k < all; ++k) identity[static_cast<size_t>(k * (all + 1))] = 1;
  dims.insert(dims.end(), {channels, all});
  const std::vector<WantedDim> wanted(dims.begin(), dims.end());
  const ValueRef kernel =
      Cast(b, Reshape(b, b.Const(Tensor::Vector(DType::kFloat32, identity)), wanted), b.dtype(f.x));
  Attributes attrs = WindowAttributes(c, f, Spatial(c, f, {"strides"}, size));
  attrs.emplace_back("dilations", Whole(f, Spatial(c, f, {"dilation_rate"}, OnesFor(f))));
  const ValueRef y = b.Op(f.spatial == 3 ? "Conv3D" : "Conv2D", {f.x, kernel}, attrs);
  const ValueRef out = WindowBack(c, f, y);
  return alone ? Squeeze(b, out, {0}) : out;
}

// tf.image.extract_patches
KValue TensorFlowPatches(LayerContext& c) {
  const ValueRef x = TensorAt(c, 0, {"images"});
  const std::vector<int64_t> sizes = IntOptions(c, {"sizes"}), strides = IntOptions(c, {"strides"}),
                             rates = IntOptions(c, {"rates"});
  return c.b.Op(
      "ExtractImagePatches", {x},
      {{"ksizes", sizes}, {"strides", strides}, {"rates", rates}, {"padding", Padding(c)}});
}

// tf.nn.conv2d_transpose: the shape of the output is an argument.
KValue ConvTransposeFunction(LayerContext& c) {
  GraphBuilder& b = c.b;
  const std::string format = TextOption(c, {"data_format"}, "NHWC");
  const ValueRef x = TensorAt(c, 0, {"input"}), kernel = TensorAt(c, 1, {"filters"});
  std::vector<ValueRef> dims;
  for (const Operand& dim : OperandsAt(c, 2, {"output_shape"})) {
    if (b.ok()) dims.push_back(Cast(b, dim.value, DType::kInt32));
  }
  if (!b.ok()) return {};
  Frame f{x, 2, true};
  if (format != "NHWC" || Rank(b, x) != 4) return c.Refuse("data_format " + format);
  const ValueRef shape = dims.size() == 1 ? dims[0] : Pack(b, dims, 0);
  Attributes attrs{{"strides", Whole(f, Spatial(c, f, {"strides"}, OnesFor(f)))},
                   {"dilations", Whole(f, Spatial(c, f, {"dilations"}, OnesFor(f)))},
                   {"data_format", std::string("NHWC")}};
  attrs.emplace_back("padding", Option(c, {"padding"}).is_null() ? "SAME" : Padding(c));
  return b.Op("Conv2DBackpropInput", {shape, kernel, x}, attrs);
}

const OperationRegistrar kWindows[] = {
    {"MaxPool", {"nn.max_pool", "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"}, PoolFunction},
    {"AveragePool",
     {"nn.avg_pool", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"},
     PoolFunction},
    {"", {"nn.pool"}, AnyPool},
    {"Conv", {"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.convolution"}, ConvFunction},
    {"DepthwiseConv", {"nn.depthwise_conv2d"}, DepthwiseConvFunction},
    {"SeparableConv", {"nn.separable_conv2d"}, SeparableConvFunction},
    {"ExtractPatches", {}, ExtractPatches},
    {"", {"image.extract_patches"}, TensorFlowPatches},
    {"", {"nn.conv2d_transpose"}, ConvTransposeFunction}};

}  // namespace
}  // namespace floe::keras
