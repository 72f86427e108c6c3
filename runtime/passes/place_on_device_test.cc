#include "runtime/passes/place_on_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/exec_context.h"
#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Placement kAll{.all = true};

Graph Placed(const TestGraph& t, const Placement& placement = kAll) {
  Graph graph = t.graph;
  EXPECT_TRUE(PlaceOnDevice(&graph, t.InputTypes(), {}, placement).ok());
  return graph;
}

// The nodes of a graph but for inputs and constants, by name.
std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Input" && node.op->name != "Const") names.push_back(node.name);
  }
  return names;
}

const Graph& BodyOf(const Graph& graph, const std::string& island) {
  for (const Node& node : graph.nodes()) {
    if (node.name == island && node.op->name == "OnDevice") return *node.subgraphs.front();
  }
  ADD_FAILURE() << "no " << island;
  static const Graph none;
  return none;
}

// What the graph gives for x = 1, 2, ..., of two rows.
std::vector<Tensor> AnswersWith(const TestGraph& t, const CompileOptions& options) {
  const auto compiled = t.Compile(options);
  if (compiled == nullptr) return {};
  Tensor x = Tensor::Allocate(DType::kFloat32, Shape({2, 4}));
  for (int i = 0; i < 8; ++i) static_cast<float*>(x.mutable_data())[i] = static_cast<float>(i + 1);
  const auto plan = compiled->Bind({x.shape()});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  ExecContext context;
  EXPECT_TRUE(context.Prepare(*plan, 2).ok());
  context.BindInput(0, x.data());
  EXPECT_TRUE(context.Run().ok());
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < t.graph.outputs.size(); ++k)
    outputs.push_back(Tensor::Copy(context.Output(static_cast<int>(k))));
  return outputs;
}

void ExpectSameAnswers(const TestGraph& t) {
  const std::vector<Tensor> with = AnswersWith(t, {.islands = kAll}), without = AnswersWith(t, {});
  ASSERT_EQ(with.size(), without.size());
  for (size_t k = 0; k < with.size(); ++k) {
    ASSERT_EQ(with[k].shape(), without[k].shape());
    EXPECT_EQ(std::memcmp(with[k].data(), without[k].data(), with[k].bytes()), 0) << "output " << k;
  }
}

ValueRef Product(TestGraph* t, const std::string& name, ValueRef x) {
  std::vector<float> w(16);
  for (int i = 0; i < 16; ++i) w[i] = static_cast<float>(i % 5) - 2;
  return t->Op("MatMul", name, {x, t->Floats(name + "/w", {4, 4}, w)});
}

TEST(PlaceOnDevice, WhatIsStaticIsOneIslandWithItsWeights) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Output(Product(&t, "b", t.Op("Relu", "r", {Product(&t, "a", x)})));
  const Graph placed = Placed(t);
  EXPECT_THAT(Names(placed), ElementsAre("island 1"));
  EXPECT_EQ(CountOps(placed, "Const"), 0);
  const Graph& body = BodyOf(placed, "island 1");
  EXPECT_THAT(Names(body), ElementsAre("a", "r", "b"));
  EXPECT_EQ(body.inputs.size(), 1u);
  EXPECT_EQ(body.outputs.size(), 1u);
  ExpectSameAnswers(t);
}

// Host nodes have even levels: 'choice' is behind the first island, and what reads both is behind
// it.
TEST(PlaceOnDevice, NoPathLeavesAnIslandAndComesBack) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef a = t.Op("Relu", "a", {x});
  const ValueRef yes = t.Op(
      "Any", "yes", {t.Op("Greater", "g", {a, t.Floats("one", {}, {1})}), t.Ints("all", {0, 1})});
  TestGraph side;
  side.Output(side.Op("Neg", "n", {side.Input("v", DType::kFloat32, kRows4)}));
  const ValueRef choice = t.Op("If", "choice", {yes, a});
  t.graph.mutable_node(choice.node).subgraphs = {std::make_shared<const Graph>(side.graph),
                                                 std::make_shared<const Graph>(side.graph)};
  const ValueRef sum = t.Op("Add", "sum", {choice, a});
  t.Output(sum);
  t.Output(a);
  const Graph placed = Placed(t);
  EXPECT_THAT(Names(placed), ElementsAre("island 1", "choice", "island 2"));
  EXPECT_THAT(Names(BodyOf(placed, "island 1")), ElementsAre("a", "g", "yes"));
  EXPECT_THAT(Names(BodyOf(placed, "island 2")), ElementsAre("sum"));
  EXPECT_EQ(BodyOf(placed, "island 1").outputs.size(), 2u);
  ExpectSameAnswers(t);
}

// The shape follows from x, and is read by Reshape alone: nothing crosses for it.
TEST(PlaceOnDevice, KnownValuesAreWhereTheyAreRead) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef a = t.Op("Relu", "a", {x});
  const ValueRef rows =
      t.Op("StridedSlice", "rows",
           {t.Op("Shape", "shape", {a}), t.Ints("b", {0}), t.Ints("e", {1}), t.Ints("s", {1})},
           {{"shrink_axis_mask", int64_t{1}}});
  const ValueRef to = t.Op("Pack", "to", {rows, t.Int("two", 2), t.Int("too", 2)});
  t.Output(t.Op("Neg", "n", {t.Op("Reshape", "r", {a, to})}));
  const Graph placed = Placed(t);
  EXPECT_THAT(Names(placed), ElementsAre("island 1"));
  EXPECT_EQ(BodyOf(placed, "island 1").outputs.size(), 1u);
  ExpectSameAnswers(t);
}

TEST(PlaceOnDevice, IslandsThatAreNotWorthTheirCrossingsStay) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Output(t.Op("Relu", "r", {x}));
  EXPECT_THAT(Names(Placed(t, {})), ElementsAre("r"));
  TestGraph u;
  u.Output(Product(&u, "p", Product(&u, "q", u.Input("x", DType::kFloat32, kRows4))));
  EXPECT_THAT(Names(Placed(u, {.small = true})), ElementsAre("island 1"));
}

// Starting a run on a device costs as much as some hundred thousand operations of the host.
TEST(PlaceOnDevice, IslandsThatDoTooLittleForTheirStartStayUnlessAskedFor) {
  TestGraph t;
  t.Output(Product(&t, "p", Product(&t, "q", t.Input("x", DType::kFloat32, kRows4))));
  EXPECT_THAT(Names(Placed(t, {})), ElementsAre("q", "p"));
  EXPECT_THAT(Names(Placed(t, {.small = true})), ElementsAre("island 1"));
  EXPECT_THAT(Names(Placed(t, {.rows = 100'000})), ElementsAre("island 1"));
  EXPECT_THAT(Names(Placed(t, {.rows = 100})), ElementsAre("q", "p"));
}

TEST(PlaceOnDevice, ShapesMayFollowFromTheRequests) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, {Dim::Unknown(), Dim::Unknown()});
  const ValueRef a = t.Op("Relu", "a", {x});
  const ValueRef where =
      t.Op("Where", "where", {t.Op("Greater", "g", {a, t.Floats("one", {}, {1})})});
  t.Output(Product(&t, "p", a));
  t.Output(t.Op("Neg", "n", {where}));
  const Graph placed = Placed(t);
  EXPECT_THAT(Names(placed), ElementsAre("island 1", "where", "n"));
  ExpectSameAnswers(t);
}

TEST(PlaceOnDevice, LoopsHaveIslandsInside) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const int loop = AddLoop(&t, 3, {x}, {DType::kFloat32}, [](TestGraph* b, const auto& v) {
    return std::vector<ValueRef>{b->Op("Neg", "n", {Product(b, "p", v[1])})};
  });
  t.Output({loop, 1});
  const auto compiled = t.Compile({.islands = kAll});
  ASSERT_NE(compiled, nullptr);
  int inside = 0;
  for (int i = 0; i < compiled->graph().size(); ++i) {
    if (compiled->graph().node(i).op->name == "While")
      inside = CountOps(compiled->subprograms(i)[1]->graph(), "OnDevice");
  }
  EXPECT_GE(inside, 1);
  ExpectSameAnswers(t);
}

TEST(PlaceOnDevice, RowsAreProvedThroughIslands) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Output(Product(&t, "a", x));
  const auto compiled = t.Compile({.islands = kAll});
  ASSERT_NE(compiled, nullptr);
  EXPECT_EQ((*compiled->Bind({Shape({1, 4})}))->why_not_batchable(), "");
  EXPECT_DOUBLE_EQ((*compiled->Bind({Shape({1, 4})}))->Flops(1),
                   (*t.Compile()->Bind({Shape({1, 4})}))->Flops(1));
}

TEST(PlaceOnDevice, SaysWhyANodeStaysOnTheHost) {
  const auto why = [](const std::string& op, DType dtype, const SymShape& shape) {
    Node node;
    node.op = FindOp(op);
    const std::vector<ValueInfo> values{{TensorType{dtype, shape}, {}, {}}};
    return WhyOnHost(node, values, values, {});
  };
  EXPECT_THAT(why("Relu", DType::kFloat32, {2}), IsEmpty());
  EXPECT_EQ(why("Relu", DType::kFloat32, {Dim::Unknown()}),
            "its shape is known only during the run");
  EXPECT_EQ(why("Relu", DType::kBool, {2}), "no kernel for bool");
  EXPECT_EQ(why("StringLower", DType::kString, {2}), "strings");
  EXPECT_EQ(why("RandomShuffle", DType::kFloat32, {2}), "it has a state or an effect");
}

}  // namespace
}  // namespace floe
