#include <gtest/gtest.h>

#include <functional>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

using Build = std::function<ValueRef(TestGraph&, ValueRef)>;

struct Blocks {
  std::vector<int32_t> size, pads, crops;
};

ValueRef Pairs(TestGraph& t, const std::string& name, const std::vector<int32_t>& values) {
  return t.Const(name, Tensor::Vector(DType::kInt32, values)
                           .Reshaped(Shape({static_cast<int64_t>(values.size()) / 2, 2})));
}

ValueRef Between(TestGraph& t, ValueRef x, const Blocks& blocks, const Build& build) {
  const ValueRef apart = t.Op("SpaceToBatchND", "apart",
                              {x, t.Ints("block", blocks.size), Pairs(t, "pads", blocks.pads)});
  return t.Op(
      "BatchToSpaceND", "together",
      {build(t, apart), t.Ints("block_again", blocks.size), Pairs(t, "crops", blocks.crops)});
}

ValueRef Weights(TestGraph& t, const Shape& shape) { return t.Const("weights", Wavy(shape, 3)); }

ValueRef Conv(TestGraph& t, ValueRef x, std::vector<int64_t> strides = {1, 1, 1, 1}) {
  return t.Op("Conv2D", "conv", {x, Weights(t, {3, 3, 2, 4})},
              {{"strides", std::move(strides)}, {"padding", std::string("VALID")}});
}

// What is left after the answers with and without passes were compared.
Graph Folded(TestGraph t, const Shape& run) {
  const std::vector<Tensor> in = {Wavy(run, 1)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  EXPECT_EQ(got.size(), 1u);
  EXPECT_EQ(want.size(), 1u);
  if (got.size() == 1 && want.size() == 1) ExpectClose(got[0], want[0], 1e-5);
  const absl::Status status = FoldDilations(&t.graph);
  EXPECT_TRUE(status.ok()) << status;
  Prune(&t.graph);
  return t.graph;
}

const SymShape kDilatedImages = {Dim::Unknown(), 9, 8, 2};
const Shape kDilatedRun({3, 9, 8, 2});

TestGraph Images(const Blocks& blocks, const Build& build) {
  TestGraph t;
  t.Output(Between(t, t.Input("x", DType::kFloat32, kDilatedImages), blocks, build));
  return t;
}

std::string WhyNotBatchable(const TestGraph& t, const Shape& run) {
  const auto plan = t.Compile()->Bind({run});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? (*plan)->why_not_batchable() : "no plan";
}

TEST(FoldDilations, TheConvolutionPads) {
  const TestGraph t = Images({{2, 3}, {2, 3, 3, 4}, {0, 1, 0, 1}}, [](TestGraph& g, ValueRef x) {
    const ValueRef biased =
        g.Op("BiasAdd", "biased", {Conv(g, x), g.Floats("b", {4}, {1, 2, 3, 4})});
    return g.Op("Relu", "y", {biased});
  });
  const Graph graph = Folded(t, kDilatedRun);
  EXPECT_EQ(CountOps(graph, "SpaceToBatchND") + CountOps(graph, "BatchToSpaceND"), 0);
  EXPECT_EQ(WhyNotBatchable(t, kDilatedRun), "");
}

TEST(FoldDilations, ACropOfTheImageItselfStays) {
  const TestGraph t = Images({{2, 2}, {0, 1, 0, 0}, {1, 0, 0, 1}},
                             [](TestGraph& g, ValueRef x) { return Conv(g, x); });
  EXPECT_EQ(CountOps(Folded(t, kDilatedRun), "BatchToSpaceND"), 1);
  EXPECT_EQ(WhyNotBatchable(t, kDilatedRun), "");
}

// Zeros are added in front of the Relu and the bias, not behind them.
TEST(FoldDilations, WhatComesBeforeTheConvolutionSeesThePads) {
  const TestGraph t = Images({{2, 2}, {2, 3, 2, 2}, {0, 1, 0, 0}}, [](TestGraph& g, ValueRef x) {
    return Conv(g, g.Op("BiasAdd", "biased", {x, g.Floats("b", {2}, {5, 7})}));
  });
  EXPECT_EQ(CountOps(Folded(t, kDilatedRun), "SpaceToBatchND"), 1);
  EXPECT_EQ(WhyNotBatchable(t, kDilatedRun), "");
}

TEST(FoldDilations, SeveralConvolutionsAndDepthwiseOnes) {
  const TestGraph t = Images({{2, 2}, {2, 3, 2, 2}, {0, 1, 0, 0}}, [](TestGraph& g, ValueRef x) {
    const ValueRef deep =
        g.Op("DepthwiseConv2dNative", "deep", {x, Weights(g, {2, 2, 2, 1})},
             {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("VALID")}});
    return Conv(g, deep);
  });
  EXPECT_EQ(CountOps(Folded(t, kDilatedRun), "SpaceToBatchND"), 0);
  EXPECT_EQ(WhyNotBatchable(t, kDilatedRun), "");
}

TEST(FoldDilations, SequencesAreImagesOfHeightOne) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 11, 2});
  t.Output(Between(t, x, {{4}, {8, 1}, {0, 1}}, [](TestGraph& g, ValueRef apart) {
    const ValueRef image = g.Op("ExpandDims", "image", {apart, g.Int("axis", -3)});
    const ValueRef conv =
        g.Op("Conv2D", "conv", {image, Weights(g, {1, 3, 2, 4})},
             {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("VALID")}});
    return g.Op("Squeeze", "y", {conv}, {{"squeeze_dims", std::vector<int64_t>{-3}}});
  }));
  const Graph graph = Folded(t, Shape({3, 11, 2}));
  EXPECT_EQ(CountOps(graph, "SpaceToBatchND") + CountOps(graph, "BatchToSpaceND"), 0);
  EXPECT_EQ(WhyNotBatchable(t, Shape({3, 11, 2})), "");
}

// The pass also sees graphs that inference has not accepted.
TEST(FoldDilations, MoreBlocksThanAnImageHasDimensionsStay) {
  TestGraph t = Images({{1, 1, 1, 1}, std::vector<int32_t>(8, 0), std::vector<int32_t>(8, 0)},
                       [](TestGraph& g, ValueRef x) { return Conv(g, x); });
  const absl::Status status = FoldDilations(&t.graph);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOps(t.graph, "SpaceToBatchND"), 1);
}

TEST(FoldDilations, OtherChainsStay) {
  const Blocks blocks{{2, 2}, {2, 3, 2, 2}, {0, 0, 0, 0}};
  const std::vector<Build> others = {
      [](TestGraph& g, ValueRef x) {
        return Conv(g, x, {1, 2, 2, 1});
      },
      [](TestGraph& g, ValueRef x) { return g.Op("Relu", "y", {x}); },  // no convolution
      [](TestGraph& g, ValueRef x) {                                    // a pixel sees the others
        return Conv(
            g, g.Op("Softmax", "y", {g.Op("Transpose", "turned", {x, g.Ints("p", {0, 2, 1, 3})})}));
      },
      [](TestGraph& g, ValueRef x) {
        return g.Op(
            "Conv2D", "conv", {x, Weights(g, {3, 3, 2, 4})},
            {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
      },
      [](TestGraph& g, ValueRef x) {  // a constant that differs from pixel to pixel
        return Conv(g, g.Op("Add", "y", {x, g.Const("c", Wavy({7, 6, 2}, 2))}));
      },
  };
  for (const Build& other : others)
    EXPECT_EQ(CountOps(Folded(Images(blocks, other), kDilatedRun), "SpaceToBatchND"), 1);
  TestGraph read_again = Images(blocks, [](TestGraph& g, ValueRef x) { return Conv(g, x); });
  for (int i = 0; i < read_again.graph.size(); ++i) {
    if (read_again.graph.node(i).name == "apart") read_again.Output({i, 0});
  }
  const absl::Status status = FoldDilations(&read_again.graph);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOps(read_again.graph, "BatchToSpaceND"), 1);
  EXPECT_EQ(read_again.graph.node(read_again.graph.outputs[1].node).op->name, "SpaceToBatchND");
}

}  // namespace
}  // namespace floe
