#include "model/import/graph_builder.h"

#include <gmock/gmock.h>

#include "model/import/graph_ops.h"

namespace floe::build {
namespace {

using ::testing::HasSubstr;

const TensorType kRows{DType::kFloat32, {Dim::Unknown(), 4}};

TEST(GraphBuilder, NodesAreNamedByScopeAndOp) {
  GraphBuilder b;
  const ValueRef x = Input(b, "x", kRows);
  b.set_scope("layer");
  const ValueRef y = b.Op("Relu", {x}), z = b.Op("Relu", {y});
  const ValueRef named = Named(b, "answer", z);
  EXPECT_EQ(b.graph().node(x.node).name, "x");
  EXPECT_EQ(b.graph().node(y.node).name, "layer/Relu");
  EXPECT_EQ(b.graph().node(z.node).name, "layer/Relu_1");
  EXPECT_EQ(b.graph().node(named.node).name, "answer");
  EXPECT_EQ(b.graph().inputs, std::vector<int>{x.node});
}

TEST(GraphBuilder, TypesAreKnownAsItGrows) {
  GraphBuilder b;
  const ValueRef x = Input(b, "x", kRows);
  const ValueRef sum = Reduce(b, "Sum", x, {1}, false);
  EXPECT_EQ(b.shape(sum).ToString(), "[?]");
  const ValueRef wide = Reshape(b, x, {DimOf(b, x, 0), 2, 2});
  EXPECT_EQ(b.shape(wide).ToString(), "[?,2,2]");
  b.Refine(sum, {Dim(3)});
  EXPECT_EQ(b.shape(sum).ToString(), "[3]");
  EXPECT_EQ(b.dtype(Cast(b, x, DType::kFloat64)), DType::kFloat64);
  EXPECT_TRUE(b.ok()) << b.status();
}

TEST(GraphBuilder, EqualConstantsAreOneNode) {
  GraphBuilder b;
  EXPECT_EQ(Ints(b, {1, 2}).node, Ints(b, {1, 2}).node);
  EXPECT_NE(Ints(b, {1, 2}).node, Ints(b, {2, 1}).node);
  EXPECT_NE(Int(b, 1).node, Int64(b, 1).node);
  EXPECT_NE(Int(b, 1).node, Ints(b, {1}).node);
  EXPECT_NE(Scalar(b, DType::kFloat32, 0.0).node, Scalar(b, DType::kFloat32, -0.0).node);
  EXPECT_NE(Text(b, "a").node, Text(b, "b").node);
  const Tensor large = Tensor::Vector(DType::kFloat32, std::vector<float>(100, 1));
  EXPECT_EQ(b.Const(large).node, b.Const(large).node);
}

TEST(GraphBuilder, KeepsTheFirstErrorAndSkipsTheRest) {
  GraphBuilder b;
  const ValueRef x = Input(b, "x", kRows);
  const int nodes = b.graph().size();
  const ValueRef wrong = b.Op("MatMul", {x, Scalar(b, DType::kFloat32, 1)});
  const ValueRef after = Add(b, At(b, Pad(b, wrong, {{1, 1}}), 0, 3), 2.0);
  b.Fail("another");
  EXPECT_LT(after.node, 0);
  EXPECT_EQ(Rank(b, after), 0);
  EXPECT_EQ(b.graph().size(), nodes + 1);  // the scalar
  b.AnnotateError("layer 'l'");
  EXPECT_THAT(std::string(b.status().message()), HasSubstr("layer 'l': MatMul"));
}

TEST(GraphBuilder, ChecksTypesOfInputs) {
  GraphBuilder b;
  const ValueRef x = Input(b, "x", kRows), n = Int(b, 1);
  b.Op("Mul", {x, n});
  EXPECT_THAT(std::string(b.status().message()), HasSubstr("input 1 is int32, expected float32"));
}

}  // namespace
}  // namespace floe::build
