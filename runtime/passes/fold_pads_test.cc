#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

struct PadCase {
  std::vector<int32_t> pads = {0, 0, 2, 1, 0, 3, 0, 0};
  std::string padding = "VALID", op = "Conv2D";
  std::optional<float> value = std::nullopt;
};

const SymShape kPaddedImages = {Dim::Unknown(), 9, 8, 2};

TestGraph Padded(const PadCase& c) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kPaddedImages);
  const ValueRef pads =
      t.Const("pads", Tensor::Vector(DType::kInt32, c.pads)
                          .Reshaped(Shape({static_cast<int64_t>(c.pads.size()) / 2, 2})));
  const ValueRef padded = c.value.has_value()
                              ? t.Op("PadV2", "pad", {x, pads, t.Floats("value", {}, {*c.value})})
                              : t.Op("Pad", "pad", {x, pads});
  const Shape filter = c.op == "Conv2D" ? Shape({3, 2, 2, 4}) : Shape({3, 2, 2, 1});
  std::vector<std::pair<std::string, AttrValue>> attrs = {
      {"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", c.padding}};
  if (c.padding == "EXPLICIT")
    attrs.emplace_back("explicit_paddings", std::vector<int64_t>{0, 0, 1, 0, 2, 2, 0, 0});
  t.Output(t.Op(c.op, "y", {padded, t.Const("w", Wavy(filter, 3))}, attrs));
  return t;
}

// Pads that are left after the answers with and without passes were compared.
int PadsLeft(TestGraph t, const Shape& run) {
  const std::vector<Tensor> in = {Wavy(run, 1)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  EXPECT_EQ(got.size(), 1u);
  EXPECT_EQ(want.size(), 1u);
  if (got.size() == 1 && want.size() == 1) ExpectClose(got[0], want[0], 1e-5);
  FoldPads(&t.graph);
  Prune(&t.graph);
  return CountOps(t.graph, "Pad") + CountOps(t.graph, "PadV2");
}

const Shape kPaddedRun({3, 9, 8, 2});

TEST(FoldPads, TheConvolutionPads) {
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"}) {
    for (const char* padding : {"VALID", "EXPLICIT"}) {
      EXPECT_EQ(PadsLeft(Padded({.padding = padding, .op = op}), kPaddedRun), 0)
          << op << " " << padding;
    }
  }
  EXPECT_EQ(PadsLeft(Padded({.value = 0}), kPaddedRun), 0);
}

TEST(FoldPads, OtherPadsStay) {
  EXPECT_EQ(PadsLeft(Padded({.value = 1}), kPaddedRun), 1);
  EXPECT_EQ(PadsLeft(Padded({.padding = "SAME"}), kPaddedRun), 1);
  EXPECT_EQ(PadsLeft(Padded({.pads = {1, 0, 0, 0, 0, 0, 0, 0}}), kPaddedRun), 1);
  TestGraph deeper = Padded({});
  for (int i = 0; i < deeper.graph.size(); ++i) {
    if (deeper.graph.node(i).name == "pad") deeper.Output({i, 0});
  }
  FoldPads(&deeper.graph);
  Prune(&deeper.graph);
  EXPECT_EQ(CountOps(deeper.graph, "Pad"), 1);  // somebody else reads it
}

// How a causal convolution over a sequence is written.
TEST(FoldPads, SequencesAreImagesOfHeightOne) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 11, 2});
  const ValueRef pads =
      t.Const("pads", Tensor::Vector(DType::kInt32, std::vector<int32_t>{0, 0, 4, 0, 0, 0})
                          .Reshaped(Shape({3, 2})));
  const ValueRef image =
      t.Op("ExpandDims", "image", {t.Op("Pad", "pad", {x, pads}), t.Int("axis", 1)});
  const ValueRef conv = t.Op("Conv2D", "conv", {image, t.Const("w", Wavy({1, 3, 2, 4}, 3))},
                             {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                              {"dilations", std::vector<int64_t>{1, 1, 2, 1}},
                              {"padding", std::string("VALID")}});
  t.Output(t.Op("Squeeze", "y", {conv}, {{"squeeze_dims", std::vector<int64_t>{1}}}));
  EXPECT_EQ(PadsLeft(t, Shape({3, 11, 2})), 0);
}

}  // namespace
}  // namespace floe
