#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

Tensor Positive(int64_t n, float seed) {
  Tensor t = Wavy(Shape({n}), seed);
  for (int64_t i = 0; i < n; ++i) static_cast<float*>(t.mutable_data())[i] += 1.5f;
  return t;
}

ValueRef BatchNorm(TestGraph& t, ValueRef x, int64_t channels, const std::string& format = "NHWC",
                   bool training = false) {
  const std::vector<ValueRef> inputs = {
      x, t.Const("scale", Positive(channels, 1)), t.Const("offset", Wavy(Shape({channels}), 2)),
      t.Const("mean", Wavy(Shape({channels}), 3)), t.Const("variance", Positive(channels, 4))};
  return t.Op("FusedBatchNormV3", "bn", inputs,
              {{"is_training", training}, {"epsilon", 1e-3f}, {"data_format", format}});
}

// Folds, and compares the answers with those of the graph as it was.
void ExpectFolds(const TestGraph& t, const Shape& input, const std::string& gone) {
  Graph folded = t.graph;
  FoldBatchNorms(&folded);
  Prune(&folded);
  EXPECT_EQ(CountOps(folded, gone), 0) << DebugString(folded);
  const std::vector<Tensor> x = {Wavy(input, 0.3f)};
  const auto got = RunGraph(t, x), want = RunGraph(t, x, {"all"});
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(want.size(), 1u);
  ExpectClose(got[0], want[0], 2e-6);
}

TEST(FoldBatchNorms, IntoEveryKindOfProduct) {
  const SymShape images = {Dim::Unknown(), 5, 5, 3};
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  struct Case {
    const char* op;
    Shape filter;
    int64_t channels;
  };
  for (const Case& c :
       {Case{"Conv2D", {3, 3, 3, 4}, 4}, Case{"DepthwiseConv2dNative", {3, 3, 3, 2}, 6}}) {
    SCOPED_TRACE(c.op);
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, images);
    const ValueRef conv = t.Op(c.op, "conv", {x, t.Const("w", Wavy(c.filter, 5))},
                               {{"strides", ones}, {"padding", std::string("SAME")}});
    const ValueRef biased =
        t.Op("BiasAdd", "biased", {conv, t.Const("b", Wavy(Shape({c.channels}), 6))});
    t.Output(t.Op("Relu6", "y", {BatchNorm(t, biased, c.channels)}));
    ExpectFolds(t, {2, 5, 5, 3}, "FusedBatchNormV3");
    Graph fused = t.graph;
    FoldBatchNorms(&fused);
    FuseEpilogues(&fused, t.InputTypes(), {});
    Prune(&fused);
    EXPECT_EQ(CountOps(fused, c.op), 1);
    EXPECT_EQ(CountOps(fused, "BiasAdd") + CountOps(fused, "Relu6"), 0) << DebugString(fused);
  }
}

TEST(FoldBatchNorms, IntoATransposedConvolution) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {2, 3, 3, 2});
  const ValueRef conv =
      t.Op("Conv2DBackpropInput", "conv",
           {t.Ints("sizes", {2, 6, 6, 4}), t.Const("w", Wavy(Shape({3, 3, 4, 2}), 5)), x},
           {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", std::string("SAME")}});
  t.Output(BatchNorm(t, conv, 4));
  ExpectFolds(t, {2, 3, 3, 2}, "FusedBatchNormV3");
}

// The form that Keras leaves after freezing: multiply, then add, around a product.
TEST(FoldBatchNorms, UnfusedFormsOfEveryShape) {
  for (const bool transposed : {false, true}) {
    for (const Shape& vector : {Shape({4}), Shape({1, 4}), Shape(), Shape({1})}) {
      TestGraph t;
      const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 3});
      const Shape weights = transposed ? Shape({4, 3}) : Shape({3, 4});
      const ValueRef product =
          t.Op("MatMul", "mm", {x, t.Const("w", Wavy(weights, 5))}, {{"transpose_b", transposed}});
      const ValueRef less = t.Op("Sub", "less", {product, t.Const("c", Wavy(vector, 1))});
      const ValueRef scaled = t.Op("Mul", "m", {t.Const("s", Wavy(vector, 2)), less});
      t.Output(t.Op("Add", "y", {scaled, t.Const("o", Wavy(vector, 3))}));
      ExpectFolds(t, {5, 3}, "Mul");
    }
  }
}

// Every one of these must be left alone.
TEST(FoldBatchNorms, WhatDoesNotFitStays) {
  const auto stays = [](const std::function<ValueRef(TestGraph&, ValueRef)>& after,
                        const std::string& op, float weight = 1) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 4});
    const ValueRef product =
        t.Op("MatMul", "mm", {x, t.Floats("w", {4, 4}, std::vector<float>(16, weight))});
    t.Output(after(t, product));
    FoldBatchNorms(&t.graph);
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, op), 1) << DebugString(t.graph);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  stays(
      [&](TestGraph& t, ValueRef v) {
        return t.Op("Mul", "m", {v, t.Floats("s", {4}, {1, infinity, 1, 1})});
      },
      "Mul");
  stays(
      [&](TestGraph& t, ValueRef v) {
        return t.Op("Mul", "m", {v, t.Floats("s", {4}, {1, 3e38f, 1, 1})});
      },
      "Mul", 2);  // the product of weight and scale leaves float32
  stays(
      [&](TestGraph& t, ValueRef v) {  // along the rows
        return t.Op("Mul", "m", {v, t.Floats("s", {4, 1}, {1, 2, 3, 4})});
      },
      "Mul");
  stays(
      [&](TestGraph& t, ValueRef v) {  // makes the result larger
        return t.Op("Mul", "m", {v, t.Floats("s", {1, 1, 4}, {1, 2, 3, 4})});
      },
      "Mul");
  stays([&](TestGraph& t, ValueRef v) { return t.Op("Mul", "m", {v, v}); }, "Mul");
  stays(
      [&](TestGraph& t, ValueRef v) {  // another output needs the product itself
        t.Output(v);
        return t.Op("Mul", "m", {v, t.Floats("s", {4}, {1, 2, 3, 4})});
      },
      "Mul");
  stays(
      [&](TestGraph& t, ValueRef v) {  // the constant is what is divided
        return t.Op("RealDiv", "d", {t.Floats("s", {4}, {1, 2, 3, 4}), v});
      },
      "RealDiv");
  stays(
      [&](TestGraph& t, ValueRef v) {
        return t.Op("RealDiv", "d", {v, t.Floats("s", {4}, {1, 0, 3, 4})});
      },
      "RealDiv");
}

TEST(FoldBatchNorms, TrainingModeStays) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 5, 5, 3});
  const ValueRef conv =
      t.Op("Conv2D", "conv", {x, t.Const("w", Wavy(Shape({1, 1, 3, 4}), 5))},
           {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
  t.Output(BatchNorm(t, conv, 4, "NHWC", /*training=*/true));
  FoldBatchNorms(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "FusedBatchNormV3"), 1);
  EXPECT_EQ(CountOps(t.graph, "BiasAdd"), 0);
}

}  // namespace
}  // namespace floe
