// Convolutions over one to three dims: dense, grouped, causal, dilated.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "model/import/keras/windows.h"

namespace floe::keras {
namespace {

std::vector<int64_t> Ones(const Windows& w) { return std::vector<int64_t>(w.spatial(), 1); }

// Keras convolves groups of three dims one by one, for want of a kernel.
ValueRef Convolve(GraphBuilder& b, ValueRef x, ValueRef kernel, int64_t groups, bool three,
                  const Attributes& attrs) {
  if (!three || groups <= 1) return b.Op(three ? "Conv3D" : "Conv2D", {x, kernel}, attrs);
  const int n = static_cast<int>(std::min<int64_t>(groups, 4096));
  const std::vector<ValueRef> xs = Split(b, x, 4, n), kernels = Split(b, kernel, 4, n);
  std::vector<ValueRef> parts;
  for (int k = 0; k < n && b.ok(); ++k) parts.push_back(b.Op("Conv3D", {xs[k], kernels[k]}, attrs));
  return b.ok() ? Concat(b, parts, 4) : ValueRef();
}

KValue Conv(LayerContext& c) {
  GraphBuilder& b = c.b;
  Windows w(c, SpatialOf(c.class_name));
  const std::vector<int64_t> size = w.Option("kernel_size", 1), strides = w.Option("strides", 1);
  const std::vector<int64_t> dilation = w.Option("dilation_rate", 1);
  const std::string padding = w.Padding(size, dilation);
  const Attributes attrs{{"strides", w.Attribute(strides)},
                         {"dilations", w.Attribute(dilation)},
                         {"padding", padding},
                         {"data_format", std::string(w.spatial() == 3 ? "NDHWC" : "NHWC")}};
  const ValueRef kernel = w.Kernel(c.Weight(0));
  c.CheckSize("filters", SizeOf(b, kernel, -1, "a kernel"), "its kernel");
  CheckKernel(b, kernel, size);
  ValueRef y = Convolve(b, w.x(), kernel, c.config.Int("groups", 1), w.spatial() == 3, attrs);
  if (c.config.Bool("use_bias", true)) y = b.Op("BiasAdd", {y, c.Weight(1)});
  return c.Activate("activation", w.Back(y));
}

// A depthwise convolution as the layer's options say, with its first variable.
ValueRef Depthwise(LayerContext& c, Windows& w) {
  const std::vector<int64_t> size = w.Option("kernel_size", 1), strides = w.Option("strides", 1);
  const std::vector<int64_t> dilation = w.Option("dilation_rate", 1);
  const std::string padding = w.Padding(size, dilation);
  const ValueRef kernel = w.Kernel(c.Weight(0));
  CheckKernel(c.b, kernel, size);
  c.CheckSize("depth_multiplier", SizeOf(c.b, kernel, -1, "a kernel"), "its kernel");
  c.config.Ignore({"groups"});  // as many as there are channels
  return c.b.Op("DepthwiseConv2dNative", {w.x(), kernel},
                {{"strides", w.Attribute(strides)},
                 {"dilations", w.Attribute(dilation)},
                 {"padding", padding},
                 {"data_format", std::string("NHWC")}});
}

KValue DepthwiseConv(LayerContext& c) {
  GraphBuilder& b = c.b;
  Windows w(c, SpatialOf(c.class_name));
  ValueRef y = Depthwise(c, w);
  if (c.config.Bool("use_bias", true)) y = b.Op("BiasAdd", {y, c.Weight(1)});
  return c.Activate("activation", w.Back(y));
}

KValue SeparableConv(LayerContext& c) {
  GraphBuilder& b = c.b;
  Windows w(c, SpatialOf(c.class_name));
  ValueRef y = Depthwise(c, w);
  const ValueRef points = w.Kernel(c.Weight(1));
  c.CheckSize("filters", SizeOf(b, points, -1, "a kernel"), "its kernel");
  y = b.Op("Conv2D", {y, points},
           {{"strides", w.Attribute(Ones(w))},
            {"dilations", w.Attribute(Ones(w))},
            {"padding", std::string("VALID")},
            {"data_format", std::string("NHWC")}});
  if (c.config.Bool("use_bias", true)) y = b.Op("BiasAdd", {y, c.Weight(2)});
  return c.Activate("activation", w.Back(y));
}

// ---- transposed ----

struct Transposed {
  bool same = false;
  std::vector<int64_t> size, strides, dilation, out_padding;
};

// The length of the output for a length of the input: in * strides + beyond.
int64_t Beyond(const Transposed& t, int k) {
  const int64_t span = (t.size[k] - 1) * t.dilation[k] + 1;
  const bool own = !t.out_padding.empty();
  if (!t.same)
    return span - t.strides[k] + (own ? t.out_padding[k] : std::max(span, t.strides[k]) - span);
  return own ? span % 2 + t.out_padding[k] - t.strides[k] : 0;
}

ValueRef OutputShape(GraphBuilder& b, const Windows& w, const Transposed& t, ValueRef kernel,
                     std::vector<WantedDim>* known) {
  const int first = w.spatial() == 1 ? 2 : 1;
  std::vector<ValueRef> dims;
  const auto add = [&](const WantedDim& d) {
    known->push_back(d);
    dims.push_back(d.fixed() ? Int(b, d.size) : At(b, b.Op("Shape", {d.from}), 0, d.axis));
  };
  add(DimOf(b, w.x(), 0));
  if (w.spatial() == 1) add(1);
  for (int k = 0; k < w.spatial(); ++k) {
    const WantedDim in = DimOf(b, w.x(), first + k);
    if (in.fixed() && in.size > INT32_MAX) b.Fail("an input past every limit");
    if (!b.ok()) return {};
    if (in.fixed()) {
      add(in.size * t.strides[k] + Beyond(t, k));
      continue;
    }
    const ValueRef length = At(b, b.Op("Shape", {in.from}), 0, in.axis);
    known->emplace_back(-1);
    dims.push_back(Add(b, Mul(b, length, static_cast<double>(t.strides[k])),
                       static_cast<double>(Beyond(t, k))));
  }
  add(SizeOf(b, kernel, -2, "the number of filters"));
  return Pack(b, dims, 0);
}

KValue ConvTranspose(LayerContext& c) {
  GraphBuilder& b = c.b;
  Windows w(c, SpatialOf(c.class_name));
  Transposed t{c.config.String("padding", "valid") == "same",
               w.Option("kernel_size", 1),
               w.Option("strides", 1),
               w.Option("dilation_rate", 1),
               {}};
  if (c.config.Has("output_padding"))
    t.out_padding = c.config.Ints("output_padding", w.spatial(), {});
  for (int64_t& n : t.out_padding) {
    if (n < 0 || n > INT32_MAX) c.Fail(absl::StrCat("output_padding has ", n));
    n = std::clamp<int64_t>(n, 0, INT32_MAX);
  }
  const std::string padding = w.Padding(t.size, t.dilation);
  const ValueRef kernel = w.Kernel(c.Weight(0));
  CheckKernel(b, kernel, t.size);
  c.CheckSize("filters", SizeOf(b, kernel, -2, "a kernel"), "its kernel");
  if (c.config.Int("groups", 1) != 1) return c.Refuse("groups of a transposed convolution");
  std::vector<WantedDim> known;
  const ValueRef shape = OutputShape(b, w, t, kernel, &known);
  const bool three = w.spatial() == 3;
  ValueRef y = b.Op(three ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput", {shape, kernel, w.x()},
                    {{"strides", w.Attribute(t.strides)},
                     {"dilations", w.Attribute(t.dilation)},
                     {"padding", padding},
                     {"data_format", std::string(three ? "NDHWC" : "NHWC")}});
  if (!b.ok()) return {};
  SymShape out;
  for (const WantedDim& d : known)
    out.push_back(d.fixed() && d.size >= 0 ? Dim(d.size) : Dim::Unknown());
  b.Refine(y, out);
  if (c.config.Bool("use_bias", true)) y = b.Op("BiasAdd", {y, c.Weight(1)});
  return c.Activate("activation", w.Back(y));
}

const LayerRegistrar kConv({"Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D",
                            "Convolution3D"},
                           Conv);
const LayerRegistrar kDepthwise({"DepthwiseConv1D", "DepthwiseConv2D"}, DepthwiseConv);
const LayerRegistrar kSeparable({"SeparableConv1D", "SeparableConv2D", "SeparableConvolution1D",
                                 "SeparableConvolution2D"},
                                SeparableConv);
const LayerRegistrar kTransposed({"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose",
                                  "Convolution2DTranspose", "Convolution3DTranspose"},
                                 ConvTranspose);

}  // namespace
}  // namespace floe::keras
