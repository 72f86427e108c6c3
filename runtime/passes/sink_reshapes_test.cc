#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

// A product of six columns that gets `dims` behind the rows.
struct Case {
  explicit Case(const std::vector<int32_t>& dims)
      : x(t.Input("x", DType::kFloat32, {Dim::Unknown(), 4})),
        product(t.Op("MatMul", "mm", {x, t.Const("w", Wavy(Shape({4, 6}), 1))})),
        reshaped(t.Op("Reshape", "reshape", {product, t.Ints("shape", dims)})) {}

  // Whether the product is followed by nothing but one Reshape.
  bool Joined() const {
    Graph graph = t.graph;
    const absl::Status status = SinkReshapes(&graph, t.InputTypes(), {});
    EXPECT_TRUE(status.ok()) << status;
    FuseEpilogues(&graph, t.InputTypes(), {});
    const Node& last = graph.node(graph.outputs[0].node);
    return last.op->name == "Reshape" && graph.node(last.inputs[0].node).op->name == "MatMul";
  }
  void ExpectSame() const {
    const std::vector<Tensor> in = {Wavy(Shape({8, 4}), 3)};
    const auto got = RunGraph(t, in), want = RunGraph(t, in, {"all"});
    ASSERT_EQ(got.size(), 1u);
    ExpectSameBits(got[0], want[0]);
  }

  TestGraph t;
  ValueRef x, product, reshaped;
};

TEST(SinkReshapes, BiasAndActivationReachTheirProduct) {
  for (const char* add : {"BiasAdd", "Add"}) {
    Case c({-1, 2, 6});
    const ValueRef sum = c.t.Op(add, "sum", {c.reshaped, c.t.Const("b", Wavy(Shape({6}), 2))});
    c.t.Output(c.t.Op("Tanh", "y", {sum}));
    EXPECT_TRUE(c.Joined());
    c.ExpectSame();
  }
}

// Attention's heads: the bias has the dims that the columns become.
TEST(SinkReshapes, ABiasOfSeveralDims) {
  for (const Shape& shape : {Shape({2, 3}), Shape({1, 2, 3})}) {
    Case c({-1, 1, 2, 3});
    c.t.Output(c.t.Op("Add", "y", {c.t.Const("b", Wavy(shape, 2)), c.reshaped}));
    EXPECT_TRUE(c.Joined());
    c.ExpectSame();
  }
}

TEST(SinkReshapes, WhatDoesNotLieAlongTheColumnsStays) {
  struct Other {
    std::vector<int32_t> dims;
    Shape bias;
  };
  for (const Other& other : {Other{{-1, 6, 2}, Shape({6, 1})}, Other{{-1, 3, 6}, Shape({3, 1})},
                             Other{{-1, 6, 6}, Shape({6, 1})}, Other{{-1, 2, 3}, Shape({3})},
                             Other{{-1, 12}, Shape({12})}, Other{{-1, 2, 6}, Shape({})}}) {
    SCOPED_TRACE(other.bias.ToString());
    Case c(other.dims);
    c.t.Output(c.t.Op("Add", "y", {c.reshaped, c.t.Const("b", Wavy(other.bias, 2))}));
    EXPECT_FALSE(c.Joined());
    const std::vector<Tensor> in = {Wavy(Shape({36, 4}), 3)};
    const auto got = RunGraph(c.t, in), want = RunGraph(c.t, in, {"all"});
    ASSERT_EQ(got.size(), 1u);
    ExpectSameBits(got[0], want[0]);
  }
}

TEST(SinkReshapes, AReshapeThatOthersReadStays) {
  Case c({-1, 2, 6});
  c.t.Output(c.t.Op("Add", "y", {c.reshaped, c.t.Const("b", Wavy(Shape({6}), 2))}));
  c.t.Output(c.reshaped);
  EXPECT_FALSE(c.Joined());
}

}  // namespace
}  // namespace floe
