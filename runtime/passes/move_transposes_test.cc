#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

using AttrPairs = std::vector<std::pair<std::string, AttrValue>>;
using Int64s = std::vector<int64_t>;

const SymShape kPlanarImages = {Dim::Unknown(), 3, 9, 8};  // channels in front
const Shape kRun({2, 3, 9, 8});

ValueRef Turn(TestGraph& t, const std::string& name, ValueRef x, const std::vector<int32_t>& perm) {
  return t.Op("Transpose", name, {x, t.Ints(name + "/perm", perm)});
}

// A convolution with channels last between transposes, as converters write it.
ValueRef TurnedConv(TestGraph& t, const std::string& name, ValueRef x, int64_t in, int64_t out) {
  const ValueRef last = Turn(t, name + "/last", x, {0, 2, 3, 1});
  const ValueRef conv = t.Op("Conv2D", name, {last, t.Const(name + "/w", Wavy({3, 3, in, out}, 2))},
                             {{"strides", Int64s{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
  return Turn(t, name + "/first", conv, {0, 3, 1, 2});
}

// The moved graph, after the answers with and without passes were compared.
Graph Moved(const TestGraph& t, const Shape& run = kRun) {
  const std::vector<Tensor> in = {Wavy(run, 1)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  EXPECT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size() && k < want.size(); ++k) ExpectClose(got[k], want[k], 1e-5);
  Graph graph = t.graph;
  PutChannelsLast(&graph);
  const absl::Status status = MoveTransposes(&graph, t.InputTypes(), {});
  EXPECT_TRUE(status.ok()) << status;
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) EXPECT_TRUE(names.insert(node.name).second) << node.name;
  return graph;
}

TestGraph PlanarImages(const std::function<ValueRef(TestGraph&, ValueRef)>& build) {
  TestGraph t;
  t.Output(build(t, t.Input("x", DType::kFloat32, kPlanarImages)));
  return t;
}

TEST(MoveTransposes, ElementwiseOpsBetweenConvolutions) {
  const TestGraph t = PlanarImages([](TestGraph& g, ValueRef x) {
    ValueRef y = TurnedConv(g, "a", x, 3, 4);
    y = g.Op("Add", "biased", {y, g.Const("b", Wavy({1, 4, 1, 1}, 3))});
    const ValueRef slope =
        g.Op("Mul", "slope", {g.Const("s", Wavy({4, 1, 1}, 4)), g.Op("Neg", "n", {y})});
    y = g.Op("Add", "prelu", {g.Op("Relu", "r", {y}), slope});
    y = g.Op("Mul", "twice", {y, g.Floats("two", {}, {2})});
    y = TurnedConv(g, "c", y, 4, 5);
    return g.Op("Add", "map", {y, g.Const("m", Wavy({5, 9, 8}, 5))});
  });
  EXPECT_EQ(CountOps(Moved(t), "Transpose"), 2);  // at the ends
  const auto plan = t.Compile()->Bind({kRun});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->why_not_batchable(), "");
}

TEST(MoveTransposes, ConcatSplitPadAndReductions) {
  const TestGraph t = PlanarImages([](TestGraph& g, ValueRef x) {
    const ValueRef a = TurnedConv(g, "a", x, 3, 4), b = TurnedConv(g, "b", x, 3, 2);
    const ValueRef joined = g.Op("ConcatV2", "joined", {a, b, g.Int("axis", -3)});
    const ValueRef padded = g.Op(
        "Pad", "padded",
        {joined,
         g.Const("pads", Tensor::Vector(DType::kInt32, std::vector<int32_t>{0, 0, 0, 1, 2, 0, 0, 3})
                             .Reshaped({4, 2}))});
    const int split =
        g.Op("SplitV", "parts", {padded, g.Ints("sizes", {3, 4}), g.Int("split_axis", 1)},
             {{"num_split", int64_t{2}}})
            .node;
    g.graph.mutable_node(split).num_outputs = 2;
    const ValueRef kept =
        g.Op("Max", "kept", {{split, 1}, g.Ints("axes", {2, -1})}, {{"keep_dims", true}});
    const ValueRef scaled = g.Op("Mul", "scaled", {{split, 1}, kept});
    return g.Op("Mean", "mean", {scaled, g.Ints("mean_axes", {3})});
  });
  EXPECT_EQ(CountOps(Moved(t), "Transpose"), 3);  // of the input for each, and of the mean
}

// The transposes around ops that had channels in front cancel.
TEST(MoveTransposes, BetweenImageOps) {
  const std::string first = "NCHW";
  const TestGraph t = PlanarImages([&](TestGraph& g, ValueRef x) {
    ValueRef y = g.Op("Conv2D", "conv", {x, g.Const("w", Wavy({3, 2, 3, 4}, 2))},
                      {{"strides", Int64s{1, 1, 2, 1}},
                       {"dilations", Int64s{1, 1, 1, 2}},
                       {"padding", std::string("EXPLICIT")},
                       {"explicit_paddings", Int64s{0, 0, 0, 0, 2, 1, 0, 3}},
                       {"data_format", first}});
    y = g.Op("BiasAdd", "biased", {y, g.Floats("b", {4}, {1, 2, 3, 4})}, {{"data_format", first}});
    y = g.Op("DepthwiseConv2dNative", "deep", {y, g.Const("v", Wavy({2, 3, 4, 2}, 3))},
             {{"strides", Int64s{1, 1, 1, 1}},
              {"padding", std::string("SAME")},
              {"data_format", first}});
    const int norm =
        g.Op("FusedBatchNormV3", "norm",
             {y, g.Const("scale", Wavy({8}, 4)), g.Const("offset", Wavy({8}, 5)),
              g.Const("mean", Wavy({8}, 6)), g.Floats("variance", {8}, {1, 2, 3, 4, 5, 6, 7, 8})},
             {{"is_training", false}, {"data_format", first}})
            .node;
    g.graph.mutable_node(norm).num_outputs = 6;
    const AttrPairs pool = {{"ksize", Int64s{1, 1, 2, 3}},
                            {"strides", Int64s{1, 1, 1, 2}},
                            {"padding", std::string("VALID")},
                            {"data_format", first}};
    y = g.Op("MaxPool", "max", {{norm, 0}}, pool);
    return g.Op("AvgPool", "mean_pool", {y},
                {{"ksize", Int64s{1, 1, 2, 1}},
                 {"strides", Int64s{1, 1, 2, 1}},
                 {"padding", std::string("SAME")},
                 {"data_format", first}});
  });
  EXPECT_EQ(CountOps(Moved(t), "Transpose"), 2);
}

TEST(MoveTransposes, VolumesToo) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 2, 4, 5, 6});
  const ValueRef conv = t.Op("Conv3D", "conv", {x, t.Const("w", Wavy({2, 3, 1, 2, 3}, 2))},
                             {{"strides", Int64s{1, 1, 1, 2, 1}},
                              {"padding", std::string("SAME")},
                              {"data_format", std::string("NCDHW")}});
  t.Output(t.Op("Relu", "y", {conv}));
  EXPECT_EQ(CountOps(Moved(t, Shape({2, 2, 4, 5, 6})), "Transpose"), 2);
}

// As many transposes, but the activation reaches its convolution.
TEST(MoveTransposes, ToTheEndOfAnEpilogue) {
  const TestGraph t = PlanarImages(
      [](TestGraph& g, ValueRef x) { return g.Op("Relu", "r", {TurnedConv(g, "c", x, 3, 4)}); });
  const Graph graph = Moved(t);
  EXPECT_EQ(CountOps(graph, "Transpose"), 2);
  EXPECT_EQ(graph.node(graph.outputs[0].node).op->name, "Transpose");
}

// A value that others need as it is has its transpose once, in front of them.
TEST(MoveTransposes, WhatIsReadElsewhereIsMadeOnce) {
  TestGraph t = PlanarImages([](TestGraph& g, ValueRef x) {
    const ValueRef y = TurnedConv(g, "a", x, 3, 4);
    g.Output(y);
    const ValueRef flat = g.Op("Reshape", "flat", {y, g.Ints("shape", {-1, 288})});
    g.Output(flat);
    return TurnedConv(g, "c", g.Op("Relu", "r", {y}), 4, 2);
  });
  EXPECT_EQ(CountOps(Moved(t), "Transpose"), 3);
}

TEST(MoveTransposes, WithoutAGainTheGraphStays) {
  const TestGraph t = PlanarImages([](TestGraph& g, ValueRef x) {
    const ValueRef turned = Turn(g, "turned", x, {0, 2, 3, 1});
    const ValueRef other = g.Op("Reshape", "other", {x, g.Ints("shape", {-1, 9, 8, 3})});
    return g.Op("Add", "sum", {g.Op("Relu", "r", {turned}), other});
  });
  const Graph graph = Moved(t);
  EXPECT_EQ(CountOps(graph, "Transpose"), 1);
  for (const Node& node : graph.nodes()) {
    if (node.name != "r") continue;
    EXPECT_EQ(graph.node(node.inputs[0].node).op->name, "Transpose");
  }
}

}  // namespace
}  // namespace floe
