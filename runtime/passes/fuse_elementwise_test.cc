#include <gtest/gtest.h>

#include <limits>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

Graph Fused(const TestGraph& t) {
  Graph graph = t.graph;
  const absl::Status status = FuseElementwise(&graph, t.InputTypes(), {});
  EXPECT_TRUE(status.ok()) << status;
  Prune(&graph);
  return graph;
}

// One node is left, and it gives the bits that the separate nodes give.
void ExpectOneStep(const TestGraph& t, const std::vector<Tensor>& in) {
  const Graph fused = Fused(t);
  EXPECT_EQ(CountOps(fused, "FusedElementwise"), 1) << DebugString(fused);
  EXPECT_EQ(fused.size(), CountOps(fused, "Input") + CountOps(fused, "Const") + 1)
      << DebugString(fused);
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(want.size(), 1u);
  ExpectSameBits(got[0], want[0]);
}

// Operands of every kind beside a whole one: one element, the last dim, the last dims, along other
// dims; short and longer than a tile, with tails.
TEST(FuseElementwise, EveryShapeOfOperand) {
  for (const Shape& whole : {Shape({3, 5, 7}), Shape({2, 3, 4099}), Shape({1, 1, 1}),
                             Shape({5000, 1, 3}), Shape({1, 1, 9000}), Shape({0, 2, 3})}) {
    const int64_t a = whole.dim(0), b = whole.dim(1), c = whole.dim(2);
    for (const Shape& part : {Shape(), Shape({1}), Shape({c}), Shape({b, c}), Shape({b, 1}),
                              Shape({a, 1, 1}), Shape({1, b, 1}), Shape({a, 1, c}), whole}) {
      SCOPED_TRACE(whole.ToString() + " with " + part.ToString());
      TestGraph t;
      const ValueRef x = t.Input("x", DType::kFloat32, SymShape(whole));
      const ValueRef p = t.Input("p", DType::kFloat32, SymShape(part));
      const ValueRef sum = t.Op("Add", "sum", {x, p});
      const ValueRef tanh = t.Op("Tanh", "tanh", {sum});
      t.Output(t.Op("Sub", "y", {p, t.Op("Mul", "product", {tanh, sum})}));
      ExpectOneStep(t, {Wavy(whole, 1), Wavy(part, 2)});
    }
  }
}

TEST(FuseElementwise, SelectsAreSteps) {
  for (const Shape& part : {Shape({}), Shape({7}), Shape({9, 1}), Shape({9, 7})}) {
    for (const bool wide : {false, true}) {
      TestGraph t;
      const DType dtype = wide ? DType::kFloat64 : DType::kFloat32;
      const ValueRef x = t.Input("x", DType::kFloat32, SymShape{9, 7});
      const ValueRef p = t.Input("p", DType::kFloat32, SymShape(part));
      const ValueRef mask = t.Op("Greater", "mask", {p, t.Floats("zero", {}, {0})});
      const ValueRef a = t.Op("Cast", "a", {x}, {{"DstT", dtype}});
      const ValueRef b = t.Op("Cast", "b", {p}, {{"DstT", dtype}});
      const ValueRef picked = t.Op("SelectV2", "picked", {mask, t.Op("Neg", "neg", {a}), b});
      t.Output(
          t.Op("Cast", "y", {t.Op("Square", "square", {picked})}, {{"DstT", DType::kFloat32}}));
      const std::vector<Tensor> in = {Wavy(Shape({9, 7}), 1), Wavy(part, 2)};
      EXPECT_EQ(CountOps(Fused(t), "SelectV2"), 0);
      const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
      ASSERT_EQ(got.size(), 1u);
      ASSERT_EQ(want.size(), 1u);
      ExpectSameBits(got[0], want[0]);
    }
  }
}

// Runs too short for a call of their own, whose tiles end inside of them.
TEST(FuseElementwise, ShortRuns) {
  for (const Shape& whole : {Shape({3, 5, 41, 24}), Shape({2, 300, 7, 3}), Shape({1, 3, 1, 2})}) {
    const int64_t a = whole.dim(0), b = whole.dim(1), c = whole.dim(2), d = whole.dim(3);
    for (const Shape& part : {Shape({a, 1, 1, d}), Shape({a, b, 1, 1}), Shape({b, c, 1}),
                              Shape({a, 1, c, 1}), Shape({a, b, c, 1}), Shape({b, 1, d})}) {
      SCOPED_TRACE(whole.ToString() + " with " + part.ToString());
      TestGraph t;
      const ValueRef x = t.Input("x", DType::kFloat32, SymShape(whole));
      const ValueRef p = t.Input("p", DType::kFloat32, SymShape(part));
      const ValueRef wide = t.Op("Cast", "wide", {p}, {{"DstT", DType::kFloat64}});
      const ValueRef sum = t.Op("Add", "sum", {x, p});
      const ValueRef square =
          t.Op("Mul", "square", {wide, t.Op("Cast", "other", {sum}, {{"DstT", DType::kFloat64}})});
      t.Output(t.Op("Sub", "y",
                    {t.Op("Cast", "back", {square}, {{"DstT", DType::kFloat32}}),
                     t.Op("Tanh", "tanh", {x})}));
      const std::vector<Tensor> in = {Wavy(whole, 1), Wavy(part, 2)};
      EXPECT_GE(CountOps(Fused(t), "FusedElementwise"), 1);
      const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
      ASSERT_EQ(got.size(), 1u);
      ASSERT_EQ(want.size(), 1u);
      ExpectSameBits(got[0], want[0]);
    }
  }
}

TEST(FuseElementwise, AFormulaOfManySteps) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 300});
  const auto number = [&](const char* name, float v) { return t.Floats(name, {}, {v}); };
  const ValueRef cubed = t.Op("Mul", "cubed", {t.Op("Square", "square", {x}), x});
  const ValueRef inner =
      t.Op("Add", "inner", {x, t.Op("Mul", "part", {cubed, number("a", 0.04f)})});
  const ValueRef tanh =
      t.Op("Tanh", "tanh", {t.Op("Mul", "scaled", {inner, number("b", 0.7978846f)})});
  t.Output(t.Op("Mul", "y",
                {t.Op("Mul", "half", {x, number("c", 0.5f)}),
                 t.Op("Add", "one_more", {tanh, number("d", 1.0f)})}));
  Tensor in = Wavy(Shape({9, 300}), 1);
  auto* data = static_cast<float*>(in.mutable_data());
  data[0] = std::numeric_limits<float>::infinity();
  data[1] = -data[0];
  data[2] = std::numeric_limits<float>::quiet_NaN();
  data[3] = -0.0f;
  ExpectOneStep(t, {in});
}

TEST(FuseElementwise, TypesMayChangeOnTheWay) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat64, {Dim::Unknown(), 3});
  const ValueRef small =
      t.Op("Cast", "small", {t.Op("Exp", "exp", {x})}, {{"DstT", DType::kFloat32}});
  const ValueRef back =
      t.Op("Cast", "back", {t.Op("Relu", "relu", {small})}, {{"DstT", DType::kFloat64}});
  t.Output(t.Op("Sub", "y", {back, x}));
  Tensor in = Tensor::Allocate(DType::kFloat64, Shape({700, 3}));
  for (int i = 0; i < 2100; ++i) static_cast<double*>(in.mutable_data())[i] = std::sin(i);
  ExpectOneStep(t, {in});
}

TEST(FuseElementwise, ABatchNormInFrontOfAProduct) {
  for (const bool first : {false, true}) {
    TestGraph t;
    const SymShape shape =
        first ? SymShape{Dim::Unknown(), 3, 4, 5} : SymShape{Dim::Unknown(), 4, 5, 3};
    const ValueRef x = t.Input("x", DType::kFloat32, shape);
    std::vector<ValueRef> inputs = {x};
    for (int k = 0; k < 4; ++k) {
      Tensor p = Wavy(Shape({3}), static_cast<float>(k));
      for (int c = 0; c < 3; ++c) static_cast<float*>(p.mutable_data())[c] += 1.5f;
      inputs.push_back(t.Const("p" + std::to_string(k), p));
    }
    const ValueRef norm = t.Op("FusedBatchNormV3", "bn", inputs,
                               {{"is_training", false},
                                {"epsilon", 1e-3f},
                                {"data_format", std::string(first ? "NCHW" : "NHWC")}});
    t.Output(t.Op("Relu", "y", {norm}));
    ExpectOneStep(t, {Wavy(first ? Shape({2, 3, 4, 5}) : Shape({2, 4, 5, 3}), 9)});
  }
}

TEST(FuseElementwise, WhatOthersReadEndsAGroup) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 3});
  const ValueRef state = t.Op("Add", "state", {t.Op("Sigmoid", "s", {x}), x});
  t.Output(state);
  t.Output(t.Op("Mul", "y", {t.Op("Tanh", "tanh", {state}), x}));
  const Graph fused = Fused(t);
  EXPECT_EQ(CountOps(fused, "FusedElementwise"), 2) << DebugString(fused);
  const std::vector<Tensor> in = {Wavy(Shape({4, 3}), 1)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  ASSERT_EQ(got.size(), 2u);
  for (int k = 0; k < 2; ++k) ExpectSameBits(got[k], want[k]);
}

TEST(FuseElementwise, SmallValuesAreNotComputedAgainForEachRow) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 3});
  const ValueRef v = t.Input("v", DType::kFloat32, {3});
  t.Output(t.Op("Add", "y", {x, t.Op("Tanh", "small", {v})}));
  EXPECT_EQ(CountOps(Fused(t), "FusedElementwise"), 0);
}

// Shape arithmetic must stay readable for inference.
TEST(FuseElementwise, IntegersStay) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kInt32, {Dim::Unknown()});
  t.Output(t.Op("Mul", "y", {t.Op("Add", "a", {x, x}), x}));
  EXPECT_EQ(CountOps(Fused(t), "FusedElementwise"), 0);
}

// Both have kernels for it; of what only one computes FuseConvChains has a test.
TEST(FuseElementwise, ForEachTargetThatComputesIt) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, SymShape{3});
  t.Output(t.Op("Relu", "y", {t.Op("Add", "sum", {x, x})}));
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    Graph graph = t.graph;
    EXPECT_TRUE(FuseElementwise(&graph, t.InputTypes(), {.device = device}).ok());
    EXPECT_EQ(CountOps(graph, "FusedElementwise"), 1);
  }
}

TEST(FuseElementwise, RowsAreProvedAsBefore) {
  const auto why = [](bool mixes, const std::vector<std::string>& disabled) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 4});
    const ValueRef c = t.Const("c", Wavy(mixes ? Shape({4, 4}) : Shape({1, 4}), 1));
    t.Output(t.Op("Relu", "y", {t.Op("Add", "sum", {x, c})}));
    const auto compiled = t.Compile({.disabled_passes = disabled});
    const auto plan = compiled->Bind({Shape({4, 4})});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return (*plan)->why_not_batchable();
  };
  EXPECT_EQ(why(false, {}), "");
  EXPECT_NE(why(true, {}), "");
  EXPECT_EQ(why(false, {"all"}), "");
  EXPECT_NE(why(true, {"all"}), "");
}

TEST(FuseElementwise, ARowHasTheSameBitsInEveryBatch) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 37});
  const ValueRef c = t.Const("c", Wavy(Shape({37}), 1));
  t.Output(t.Op("Mul", "y", {x, t.Op("Sigmoid", "s", {t.Op("Add", "sum", {x, c})})}));
  const Tensor all = Wavy(Shape({130, 37}), 3);
  const auto together = RunGraph(t, {all});
  ASSERT_EQ(together.size(), 1u);
  for (int64_t row : {0, 1, 64, 129}) {
    Tensor one = Tensor::Allocate(DType::kFloat32, Shape({1, 37}));
    std::memcpy(one.mutable_data(), all.as<float>() + row * 37, one.bytes());
    const auto alone = RunGraph(t, {one});
    ASSERT_EQ(alone.size(), 1u);
    EXPECT_EQ(std::memcmp(alone[0].data(), together[0].as<float>() + row * 37, one.bytes()), 0);
  }
}

}  // namespace
}  // namespace floe
