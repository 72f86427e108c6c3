#include <gtest/gtest.h>

#include <functional>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

const SymShape kThinImages = {Dim::Unknown(), 3, 1, 5};

// What is left of a graph around x, after the answers were compared.
Graph Simplified(const std::function<ValueRef(TestGraph&, ValueRef)>& build,
                 const SymShape& shape = kThinImages, const Shape& run = Shape({2, 3, 1, 5})) {
  TestGraph t;
  t.Output(build(t, t.Input("x", DType::kFloat32, shape)));
  const std::vector<Tensor> in = {Wavy(run, 1)};
  const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
  EXPECT_EQ(got.size(), 1u);
  EXPECT_EQ(want.size(), 1u);
  if (got.size() == 1 && want.size() == 1) ExpectSameBits(got[0], want[0]);
  const absl::Status status = SimplifyAlgebra(&t.graph, t.InputTypes(), {});
  EXPECT_TRUE(status.ok()) << status;
  Prune(&t.graph);
  return t.graph;
}

TEST(SimplifyAlgebra, TransposesThatCancelAreGone) {
  const Graph graph = Simplified([](TestGraph& t, ValueRef x) {
    const ValueRef there = t.Op("Transpose", "there", {x, t.Ints("p", {0, 3, 1, 2})});
    return t.Op("Transpose", "back", {there, t.Ints("q", {0, 2, 3, 1})});
  });
  EXPECT_EQ(CountOps(graph, "Transpose"), 0);
  EXPECT_EQ(graph.size(), 1);
}

TEST(SimplifyAlgebra, TransposesThatDoNotCancelAreOne) {
  const Graph graph = Simplified([](TestGraph& t, ValueRef x) {
    const ValueRef one = t.Op("Transpose", "one", {x, t.Ints("p", {3, 0, 1, 2})});
    const ValueRef two = t.Op("Transpose", "two", {one, t.Ints("q", {2, -1, 0, 1})});
    return t.Op("Transpose", "three", {two, t.Ints("r", {1, 0, 2, 3})});
  });
  EXPECT_EQ(CountOps(graph, "Transpose"), 1);
}

TEST(SimplifyAlgebra, MovingDimsOfOneIsAReshape) {
  const auto move = [](TestGraph& t, ValueRef x) {
    return t.Op("Transpose", "moved", {x, t.Ints("p", {0, 2, 1, 3})});
  };
  EXPECT_EQ(CountOps(Simplified(move), "Reshape"), 1);
  EXPECT_EQ(CountOps(Simplified(move, {Dim::Unknown(), 3, 2, 5}, Shape({2, 3, 2, 5})), "Reshape"),
            0);
  // Which dim is 1 must be known, and dim 0 stays where it is.
  EXPECT_EQ(CountOps(Simplified(move, {2, 3, Dim::Unknown(), 5}), "Reshape"), 0);
  const auto rows = [](TestGraph& t, ValueRef x) {
    return t.Op("Transpose", "moved", {x, t.Ints("p", {1, 0, 2})});
  };
  EXPECT_EQ(CountOps(Simplified(rows, {Dim::Unknown(), 1, 5}, Shape({4, 1, 5})), "Reshape"), 0);
}

TEST(SimplifyAlgebra, RowsAreStillProved) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kThinImages);
  t.Output(t.Op("Transpose", "y", {x, t.Ints("p", {0, 2, 1, 3})}));
  const auto plan = t.Compile()->Bind({Shape({7, 3, 1, 5})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->why_not_batchable(), "");
}

TEST(SimplifyAlgebra, NothingIsLeftOfWhatChangesNothing) {
  const std::vector<std::function<ValueRef(TestGraph&, ValueRef)>> builds = {
      [](TestGraph& t, ValueRef x) {
        return t.Op("Cast", "y", {x}, {{"DstT", DType::kFloat32}});
      },
      [](TestGraph& t, ValueRef x) {
        return t.Op(
            "Pad", "y",
            {x, t.Const("p", Tensor::Vector<int32_t>(DType::kInt32, std::vector<int32_t>(8, 0))
                                 .Reshaped(Shape({4, 2})))});
      },
      [](TestGraph& t, ValueRef x) { return t.Op("AddN", "y", {x}); },
      [](TestGraph& t, ValueRef x) {
        return t.Op("Transpose", "y", {x, t.Ints("p", {0, 1, 2, -1})});
      },
  };
  for (size_t i = 0; i < builds.size(); ++i) EXPECT_EQ(Simplified(builds[i]).size(), 1) << i;
}

TEST(SimplifyAlgebra, NeutralNumbersOnlyOfIntegers) {
  for (const bool whole : {false, true}) {
    TestGraph t;
    const ValueRef x = t.Input("x", whole ? DType::kInt32 : DType::kFloat32, {Dim::Unknown(), 2});
    const auto number = [&](const char* name, int v) {
      return whole ? t.Int(name, v) : t.Floats(name, {}, {static_cast<float>(v)});
    };
    const ValueRef sum = t.Op("Add", "sum", {number("zero", 0), x});
    const ValueRef product = t.Op("Mul", "product", {sum, number("one", 1)});
    t.Output(t.Op("Sub", "y", {product, number("nothing", 0)}));
    t.Output(t.Op(
        "Add", "larger",
        {x, t.Const("rows",
                    Tensor::Vector<int32_t>(DType::kInt32, {0, 0}).Reshaped(Shape({1, 2, 1})))}));
    if (!whole) {
      t.graph.outputs.pop_back();
      t.signature.outputs.pop_back();
      Prune(&t.graph);
    }
    ASSERT_TRUE(SimplifyAlgebra(&t.graph, t.InputTypes(), {}).ok());
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, "Mul"), whole ? 0 : 1);
    EXPECT_EQ(CountOps(t.graph, "Add"), 1);
    EXPECT_EQ(CountOps(t.graph, "Sub"), whole ? 0 : 1);
  }
}

// As a bincount of a given length is written.
TEST(SimplifyAlgebra, BoundsOnBothSidesAreTheBound) {
  struct Bounds {
    const char *outer, *inner;
    DType dtype;
    int low, high;
    int left;  // how many of the two stay
  };
  for (const Bounds& c : {Bounds{"Minimum", "Maximum", DType::kInt32, 7, 7, 0},
                          Bounds{"Maximum", "Minimum", DType::kInt32, 7, 7, 0},
                          Bounds{"Minimum", "Maximum", DType::kInt32, 6, 7, 2},
                          Bounds{"Minimum", "Minimum", DType::kInt32, 7, 7, 2},
                          Bounds{"Minimum", "Maximum", DType::kFloat32, 7, 7, 2}}) {
    TestGraph t;
    const auto number = [&](const char* name, int v) {
      return c.dtype == DType::kInt32 ? t.Int(name, v)
                                      : t.Floats(name, {}, {static_cast<float>(v)});
    };
    const ValueRef x = t.Input("x", c.dtype, {});
    const ValueRef inner = t.Op(c.inner, "inner", {x, number("low", c.low)});
    t.Output(t.Op("Neg", "y", {t.Op(c.outer, "outer", {number("high", c.high), inner})}));
    ASSERT_TRUE(SimplifyAlgebra(&t.graph, t.InputTypes(), {}).ok());
    Prune(&t.graph);
    EXPECT_EQ(CountOps(t.graph, "Minimum") + CountOps(t.graph, "Maximum"), c.left)
        << c.outer << " " << c.inner << " " << c.low << " " << c.high;
  }
}

TEST(SimplifyAlgebra, SmallPowersAreMultiplied) {
  for (const float exponent : {2.0f, 3.0f, 4.0f}) {
    for (const Shape& shape : {Shape({}), Shape({1, 1}), Shape({1, 1, 1})}) {
      TestGraph t;
      const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 3});
      t.Output(t.Op("Pow", "y", {x, t.Floats("e", shape, {exponent})}));
      Graph graph = t.graph;
      ASSERT_TRUE(SimplifyAlgebra(&graph, t.InputTypes(), {}).ok());
      EXPECT_EQ(CountOps(graph, "Pow"), exponent == 4 || shape.rank() == 3 ? 1 : 0);
      const std::vector<Tensor> in = {Wavy(Shape({7, 3}), 1)};
      const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
      ASSERT_EQ(got.size(), 1u);
      ExpectClose(got[0], want[0], 5e-7);
    }
  }
}

Graph WithFilter(const Shape& filter) {
  return Simplified(
      [&](TestGraph& t, ValueRef x) {
        return t.Op(
            "Conv2D", "y", {x, t.Const("w", Wavy(filter, 3))},
            {{"strides", std::vector<int64_t>{1, 2, 1, 1}}, {"padding", std::string("SAME")}});
      },
      {Dim::Unknown(), 7, 6, 4}, Shape({2, 7, 6, 4}));
}

TEST(SimplifyAlgebra, GroupsOfOneChannelAreDepthwise) {
  EXPECT_EQ(CountOps(WithFilter({3, 2, 1, 4}), "DepthwiseConv2dNative"), 1);
  EXPECT_EQ(CountOps(WithFilter({3, 2, 1, 12}), "DepthwiseConv2dNative"), 1);
  EXPECT_EQ(CountOps(WithFilter({3, 2, 2, 4}), "DepthwiseConv2dNative"), 0);
  EXPECT_EQ(CountOps(WithFilter({3, 2, 4, 4}), "DepthwiseConv2dNative"), 0);
}

TEST(SimplifyAlgebra, AConvolutionKeepsTheRouteThatIsAsked) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), 7, 6, 4});
  t.Output(t.Op("Conv2D", "y", {x, t.Const("w", Wavy(Shape({3, 2, 1, 4}), 3))},
                {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", std::string("SAME")}}));
  KernelOptions options;
  options.routes["y"] = "gemm";
  ASSERT_TRUE(SimplifyAlgebra(&t.graph, t.InputTypes(), options).ok());
  EXPECT_EQ(CountOps(t.graph, "Conv2D"), 1);
}

}  // namespace
}  // namespace floe
