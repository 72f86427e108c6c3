#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

using Numbers = std::vector<int64_t>;
using Attributes = std::vector<std::pair<std::string, AttrValue>>;

const std::string kFirst = "NCHW";

int ChannelsInFront(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes())
    count += node.attrs.String("data_format").substr(0, 2) == "NC" ? 1 : 0;
  return count;
}

// The answers to `in` with all passes and with the needed ones alone, which must agree.
std::vector<Tensor> Answers(const TestGraph& t, const std::vector<Tensor>& in) {
  Graph graph = t.graph;
  PutChannelsLast(&graph);
  EXPECT_EQ(ChannelsInFront(graph), 0);
  std::vector<Tensor> all = RunGraph(t, in), needed = RunGraph(t, in, {"all"});
  EXPECT_EQ(all.size(), needed.size());
  for (size_t k = 0; k < all.size() && k < needed.size(); ++k) ExpectClose(all[k], needed[k], 1e-5);
  return needed;
}

TEST(ChannelsLast, ConvolutionByItsDefinition) {
  constexpr int64_t kIn = 2, kH = 9, kW = 8, kOut = 4, kTapsH = 3, kTapsW = 2;
  TestGraph t;
  const Tensor filter = Wavy({kTapsH, kTapsW, kIn, kOut}, 2);
  t.Output(
      t.Op("Conv2D", "y",
           {t.Input("x", DType::kFloat32, {Dim::Unknown(), kIn, kH, kW}), t.Const("w", filter)},
           {{"strides", Numbers{1, 1, 2, 1}},
            {"dilations", Numbers{1, 1, 1, 3}},
            {"padding", std::string("EXPLICIT")},
            {"explicit_paddings", Numbers{0, 0, 0, 0, 2, 1, 0, 3}},
            {"data_format", kFirst}}));
  const Tensor x = Wavy({2, kIn, kH, kW}, 1);
  const std::vector<Tensor> got = Answers(t, {x});
  ASSERT_EQ(got.size(), 1u);
  constexpr int64_t kOutH = 5, kOutW = 8;
  ASSERT_EQ(got[0].shape(), Shape({2, kOut, kOutH, kOutW}));
  for (int64_t i = 0; i < got[0].elements(); ++i) {
    const int64_t ox = i % kOutW, oy = i / kOutW % kOutH, o = i / (kOutW * kOutH) % kOut,
                  n = i / (kOutW * kOutH * kOut);
    double want = 0;
    for (int64_t tap = 0; tap < kTapsH * kTapsW * kIn; ++tap) {
      const int64_t c = tap % kIn, kx = tap / kIn % kTapsW, ky = tap / (kIn * kTapsW);
      const int64_t iy = oy * 2 + ky - 2, ix = ox + kx * 3;
      if (iy < 0 || iy >= kH || ix >= kW) continue;
      want += static_cast<double>(x.as<float>()[((n * kIn + c) * kH + iy) * kW + ix]) *
              filter.as<float>()[tap * kOut + o];
    }
    ASSERT_NEAR(got[0].as<float>()[i], want, 1e-5) << i;
  }
}

struct LayoutCase {
  std::string op;
  Attributes first, last;  // the attributes for either layout
  Shape filter = {};       // none for pools
};

// The op with channels in front, and between transposes by hand.
void ExpectSame(const LayoutCase& c, const SymShape& type, const Shape& run) {
  SCOPED_TRACE(c.op);
  TestGraph first, last;
  const bool volume = run.rank() == 5;
  const auto inputs = [&](TestGraph& t, ValueRef x) {
    std::vector<ValueRef> in = {x};
    if (c.filter.rank() != 0) in.push_back(t.Const("w", Wavy(c.filter, 3)));
    return in;
  };
  Attributes attrs = c.first;
  attrs.emplace_back("data_format", std::string(volume ? "NCDHW" : "NCHW"));
  first.Output(first.Op(c.op, "y", inputs(first, first.Input("x", DType::kFloat32, type)), attrs));
  const std::vector<int32_t> in = volume ? std::vector<int32_t>{0, 2, 3, 4, 1}
                                         : std::vector<int32_t>{0, 2, 3, 1},
                             out = volume ? std::vector<int32_t>{0, 4, 1, 2, 3}
                                          : std::vector<int32_t>{0, 3, 1, 2};
  const ValueRef x = last.Op("Transpose", "in",
                             {last.Input("x", DType::kFloat32, type), last.Ints("in_perm", in)});
  attrs = c.last;
  attrs.emplace_back("data_format", std::string(volume ? "NDHWC" : "NHWC"));
  const ValueRef y = last.Op(c.op, "y", inputs(last, x), attrs);
  last.Output(last.Op("Transpose", "out", {y, last.Ints("out_perm", out)}));
  const std::vector<Tensor> got = Answers(first, {Wavy(run, 1)}),
                            want = RunGraph(last, {Wavy(run, 1)});
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(want.size(), 1u);
  ExpectClose(got[0], want[0], 1e-5);
}

TEST(ChannelsLast, EveryOpOfImagesAndVolumes) {
  const auto window = [](const char* name, const Numbers& taps, const Numbers& strides) {
    return Attributes{{name, taps}, {"strides", strides}, {"padding", std::string("SAME")}};
  };
  const SymShape images = {Dim::Unknown(), 3, 9, 8};
  const Shape run({2, 3, 9, 8});
  ExpectSame({"DepthwiseConv2dNative", window("dilations", {1, 1, 1, 2}, {1, 1, 1, 1}),
              window("dilations", {1, 1, 2, 1}, {1, 1, 1, 1}), Shape({2, 3, 3, 2})},
             images, run);
  for (const char* op : {"MaxPool", "AvgPool"})
    ExpectSame({op, window("ksize", {1, 1, 2, 3}, {1, 1, 3, 2}),
                window("ksize", {1, 2, 3, 1}, {1, 3, 2, 1})},
               images, run);
  const SymShape volumes = {Dim::Unknown(), 2, 4, 5, 6};
  const Shape volume({2, 2, 4, 5, 6});
  ExpectSame({"Conv3D", window("dilations", {1, 1, 1, 1, 2}, {1, 1, 1, 1, 1}),
              window("dilations", {1, 1, 1, 2, 1}, {1, 1, 1, 1, 1}), Shape({2, 3, 1, 2, 3})},
             volumes, volume);
  for (const char* op : {"MaxPool3D", "AvgPool3D"})
    ExpectSame({op, window("ksize", {1, 1, 1, 2, 3}, {1, 1, 2, 1, 3}),
                window("ksize", {1, 1, 2, 3, 1}, {1, 2, 1, 3, 1})},
               volumes, volume);
}

// input_sizes: a constant of all dims or of the spatial ones, or computed with the batch.
TEST(ChannelsLast, TransposedConvolution) {
  const auto graph = [](const char* format, const char* sizes) {
    TestGraph t;
    const bool first = std::string(format) == kFirst;
    const ValueRef x =
        t.Input("x", DType::kFloat32,
                first ? SymShape{Dim::Unknown(), 2, 3, 4} : SymShape{Dim::Unknown(), 3, 4, 2});
    ValueRef in = t.Ints("sizes", {2, 3, 6, 12});
    if (std::string(sizes) == "spatial") in = t.Ints("spatial", {6, 12});
    if (std::string(sizes) == "computed" || !first) {
      const ValueRef rows = t.Op("StridedSlice", "rows",
                                 {t.Op("Shape", "shape", {x}), t.Ints("zero", {0}),
                                  t.Ints("one", {1}), t.Ints("step", {1})},
                                 {{"shrink_axis_mask", int64_t{1}}});
      const ValueRef h = t.Int("h", 6), w = t.Int("w", 12), c = t.Int("c", 3);
      in =
          t.Op("Pack", "packed",
               first ? std::vector<ValueRef>{rows, c, h, w} : std::vector<ValueRef>{rows, h, w, c});
    }
    t.Output(t.Op("Conv2DBackpropInput", "y", {in, t.Const("w0", Wavy({3, 2, 3, 2}, 3)), x},
                  {{"strides", first ? Numbers{1, 1, 2, 3} : Numbers{1, 2, 3, 1}},
                   {"padding", std::string("SAME")},
                   {"data_format", std::string(format)}}));
    return t;
  };
  const Tensor x = Wavy({2, 2, 3, 4}, 1);
  Tensor turned = Tensor::Allocate(DType::kFloat32, {2, 3, 4, 2});
  for (int64_t i = 0; i < x.elements(); ++i)
    static_cast<float*>(turned.mutable_data())[(i / 24 * 12 + i % 12) * 2 + i / 12 % 2] =
        x.as<float>()[i];
  const std::vector<Tensor> want = RunGraph(graph("NHWC", "computed"), {turned});
  ASSERT_EQ(want.size(), 1u);
  for (const char* sizes : {"all", "spatial", "computed"}) {
    SCOPED_TRACE(sizes);
    const std::vector<Tensor> got = Answers(graph("NCHW", sizes), {x});
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].shape(), Shape({2, 3, 6, 12}));
    for (int64_t i = 0; i < got[0].elements(); ++i)
      ASSERT_NEAR(got[0].as<float>()[i],
                  want[0].as<float>()[(i / 216 * 72 + i % 72) * 3 + i / 72 % 3], 1e-5)
          << i;
  }
}

// A chain of such ops is one without them in the middle: normalisation and activation are folded.
TEST(ChannelsLast, TheRestOfThePassesApply) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 3, 5, 6});
  ValueRef y = t.Op("Conv2D", "conv", {x, t.Const("w", Wavy({3, 3, 3, 4}, 5))},
                    {{"strides", Numbers{1, 1, 1, 1}},
                     {"padding", std::string("SAME")},
                     {"data_format", kFirst}});
  y = t.Op("FusedBatchNormV3", "norm",
           {y, t.Floats("scale", {4}, {1, 2, 3, 4}), t.Const("offset", Wavy({4}, 5)),
            t.Const("mean", Wavy({4}, 6)), t.Floats("variance", {4}, {1, 2, 3, 4})},
           {{"is_training", false}, {"data_format", kFirst}});
  t.Output(t.Op("Relu", "y", {y}));
  EXPECT_EQ(Answers(t, {Wavy({2, 3, 5, 6}, 1)}).size(), 1u);
  Graph graph = t.graph;
  const std::vector<TensorType> types = t.InputTypes();
  ASSERT_TRUE(RunPasses(&graph, {types, {}}, {}).ok());
  EXPECT_EQ(CountOps(graph, "FusedBatchNormV3") + CountOps(graph, "Relu"), 0);
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);
}

// What inference refuses keeps its message; batch statistics keep their rows.
TEST(ChannelsLast, OthersStay) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {1, 3, 5, 6});
  const ValueRef pool = t.Op("MaxPool", "pool", {x},
                             {{"ksize", Numbers{1, 1, 2}},
                              {"strides", Numbers{1, 1, 2, 2}},
                              {"padding", std::string("SAME")},
                              {"data_format", kFirst}});
  t.Op("FusedBatchNorm", "norm", {pool}, {{"is_training", true}, {"data_format", kFirst}});
  t.Op("BiasAdd", "bias", {pool, t.Floats("b", {3}, {1, 2, 3})}, {{"data_format", kFirst}});
  PutChannelsLast(&t.graph);
  EXPECT_EQ(ChannelsInFront(t.graph), 3);
  EXPECT_EQ(CountOps(t.graph, "Transpose"), 0);
}

}  // namespace
}  // namespace floe
