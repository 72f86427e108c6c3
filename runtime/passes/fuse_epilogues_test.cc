#include <gtest/gtest.h>

#include <functional>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

TEST(FuseEpilogues, BiasAndActivationJoinTheirMatMul) {
  for (const char* bias_op : {"BiasAdd", "Add"}) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
    const ValueRef product =
        t.Op("MatMul", "mm", {x, t.Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
    const ValueRef biased = t.Op(bias_op, "bias", {product, t.Floats("b", {2}, {1, 2})});
    t.Output(t.Op("Relu", "y", {biased}));
    FuseEpilogues(&t.graph, t.InputTypes(), {});
    Prune(&t.graph);
    const Node& fused = t.graph.node(t.graph.outputs[0].node);
    EXPECT_EQ(fused.op->name, "MatMul");
    EXPECT_EQ(EpilogueOf(fused.attrs), (Epilogue{.activation = Activation::kRelu, .bias = 2}));
    EXPECT_EQ(fused.inputs.size(), 3u);
  }
}

TEST(FuseEpilogues, EveryActivationOfTheKernels) {
  for (const char* name :
       {"Relu", "Relu6", "Sigmoid", "Tanh", "Elu", "LeakyRelu", "Swish", "Swish times one", "Gelu",
        "GeluTanh", "Mish", "Selu", "Softplus", "Softsign", "Exp"}) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
    ValueRef y = t.Op("MatMul", "mm", {x, t.Const("w", Wavy(Shape({4, 3}), 1))});
    y = t.Op("Add", "sum", {t.Const("b", Wavy(Shape({1, 3}), 2)), y});
    if (std::string(name).starts_with("Swish")) {
      const bool times_one = std::string(name) != "Swish";
      const ValueRef x1 = times_one ? t.Op("Mul", "x1", {t.Floats("one", {}, {1}), y}) : y;
      y = t.Op("Mul", "y", {t.Op("Sigmoid", "gate", {x1}), y});
    } else {
      y = t.Op(name, "y", {y}, {{"alpha", 0.3f}});
    }
    t.Output(y);
    const std::vector<Tensor> in = {Wavy(Shape({3, 4}), 3)};
    const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
    ASSERT_EQ(got.size(), 1u);
    ExpectSameBits(got[0], want[0]);
    FuseEpilogues(&t.graph, t.InputTypes(), {});
    Prune(&t.graph);
    EXPECT_EQ(t.graph.size(), 4) << name << "\n" << DebugString(t.graph);
  }
}

// As Keras writes a one-dimensional convolution.
TEST(FuseEpilogues, PassesOverTheSqueezeOfAConvolution) {
  for (const char* bias_op : {"BiasAdd", "Add"}) {
    TestGraph t;
    const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 1, 9, 3});
    const ValueRef conv =
        t.Op("Conv2D", "conv", {x, t.Const("w", Wavy(Shape({1, 4, 3, 5}), 1))},
             {{"padding", std::string("VALID")}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}});
    const ValueRef line =
        t.Op("Squeeze", "line", {conv}, {{"squeeze_dims", std::vector<int64_t>{-3}}});
    const Tensor bias = Wavy(Shape({5}), 2);
    const bool add = std::string(bias_op) == "Add";
    const ValueRef biased =
        t.Op(bias_op, "bias", {line, t.Const("b", add ? bias.Reshaped({1, 1, 5}) : bias)});
    t.Output(t.Op("Relu", "y", {biased}));
    const std::vector<Tensor> in = {Wavy(Shape({2, 1, 9, 3}), 3)};
    const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
    ASSERT_EQ(got.size(), 1u);
    ExpectSameBits(got[0], want[0]);
    FuseEpilogues(&t.graph, t.InputTypes(), {});
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, bias_op), 0) << DebugString(t.graph);
    EXPECT_EQ(CountOps(t.graph, "Relu"), 0) << DebugString(t.graph);
    EXPECT_EQ(CountOps(t.graph, "Squeeze"), 1) << DebugString(t.graph);
  }
}

TEST(FuseEpilogues, AConvolutionReadBesideItsSqueezeStays) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 1, 9, 3});
  const ValueRef conv =
      t.Op("Conv2D", "conv", {x, t.Const("w", Wavy(Shape({1, 4, 3, 5}), 1))},
           {{"padding", std::string("VALID")}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}});
  const ValueRef line =
      t.Op("Squeeze", "line", {conv}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  t.Output(conv);
  t.Output(t.Op("Relu", "y", {line}));
  FuseEpilogues(&t.graph, t.InputTypes(), {});
  EXPECT_EQ(CountOps(t.graph, "Relu"), 1);
}

TEST(FuseEpilogues, AValueThatOthersReadStays) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef product =
      t.Op("MatMul", "mm", {x, t.Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
  t.Output(product);
  t.Output(t.Op("Relu", "y", {product}));
  FuseEpilogues(&t.graph, t.InputTypes(), {});
  EXPECT_EQ(CountOps(t.graph, "Relu"), 1);
}

TEST(FuseEpilogues, TransposedConvolutionsTakeABias) {
  for (const int spatial : {2, 3}) {
    SCOPED_TRACE(spatial);
    TestGraph t;
    Shape image = {2}, filter;
    std::vector<int64_t> strides = {1};
    std::vector<int32_t> sizes = {2};
    for (int i = 0; i < spatial; ++i) {
      image.push_back(3);
      filter.push_back(2);
      strides.push_back(2);
      sizes.push_back(6);
    }
    image.push_back(4);
    filter.push_back(5);
    filter.push_back(4);
    strides.push_back(1);
    sizes.push_back(5);
    const ValueRef x = t.Input("x", DType::kFloat32, SymShape(image));
    const ValueRef conv = t.Op(spatial == 2 ? "Conv2DBackpropInput" : "Conv3DBackpropInputV2",
                               "conv", {t.Ints("sizes", sizes), t.Const("w", Wavy(filter, 1)), x},
                               {{"strides", strides}, {"padding", std::string("SAME")}});
    const ValueRef biased = t.Op("BiasAdd", "biased", {conv, t.Floats("b", {5}, {1, -2, 3, 4, 5})});
    t.Output(t.Op("Relu", "y", {biased}));
    const std::vector<Tensor> in = {Wavy(image, 3)};
    const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
    ASSERT_EQ(got.size(), 1u);
    ExpectClose(got[0], want[0], 1e-6);
    FuseEpilogues(&t.graph, t.InputTypes(), {});
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, "BiasAdd") + CountOps(t.graph, "Relu"), 0) << DebugString(t.graph);
  }
}

// x + conv(conv(x)), where `other` may make another value of the first x.
TestGraph Block(const SymShape& shape, const std::function<ValueRef(TestGraph&, ValueRef)>& other) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, shape);
  const std::vector<std::pair<std::string, AttrValue>> attrs = {
      {"padding", std::string("SAME")}, {"strides", std::vector<int64_t>{1, 1, 1, 1}}};
  const ValueRef inner = t.Op("Conv2D", "inner", {x, t.Const("v", Wavy({3, 3, 4, 4}, 1))}, attrs);
  const ValueRef conv = t.Op("Conv2D", "conv", {inner, t.Const("w", Wavy({3, 3, 4, 4}, 2))}, attrs);
  const ValueRef biased = t.Op("BiasAdd", "biased", {conv, t.Floats("b", {4}, {1, 2, 3, 4})});
  t.Output(t.Op("Relu", "y", {t.Op("Add", "sum", {other(t, x), biased})}));
  return t;
}

const SymShape kImages = {Dim::Unknown(), 5, 6, 4};

TEST(FuseEpilogues, AConvolutionAddsAValueOfItsShape) {
  TestGraph t = Block(kImages, [](TestGraph&, ValueRef x) { return x; });
  const std::vector<Tensor> in = {Wavy(Shape({3, 5, 6, 4}), 3)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  ASSERT_EQ(got.size(), 1u);
  ExpectClose(got[0], want[0], 1e-6);
  const auto plan = t.Compile()->Bind({Shape({3, 5, 6, 4})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->why_not_batchable(), "");
  FuseEpilogues(&t.graph, t.InputTypes(), {});
  Prune(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Add") + CountOps(t.graph, "Relu"), 0) << DebugString(t.graph);
}

TEST(FuseEpilogues, ASumThatMayBroadcastStays) {
  const auto mean = [](TestGraph& t, ValueRef x) {
    return t.Op("Mean", "mean", {x, t.Ints("axes", {1, 2})}, {{"keep_dims", true}});
  };
  const auto another = [](TestGraph& t, ValueRef) {
    return t.Input("z", DType::kFloat32, kImages);
  };
  std::vector<TestGraph> graphs = {
      Block(kImages, mean), Block(kImages, another),
      Block({Dim::Unknown(), Dim::Unknown(), 6, 4}, [](TestGraph&, ValueRef x) { return x; })};
  for (TestGraph& t : graphs) {
    FuseEpilogues(&t.graph, t.InputTypes(), {});
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, "Add"), 1) << DebugString(t.graph);
  }
}

TEST(FuseEpilogues, ABiasOfAnotherLengthIsNotABias) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef product =
      t.Op("MatMul", "mm", {x, t.Floats("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
  t.Output(t.Op("Add", "y", {product, t.Floats("b", {1}, {1})}));
  FuseEpilogues(&t.graph, t.InputTypes(), {});
  EXPECT_EQ(CountOps(t.graph, "Add"), 1);
}

}  // namespace
}  // namespace floe
