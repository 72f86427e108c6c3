// What control flow does not take refuses nothing; loops settle however many variables move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/exec_context.h"
#include "runtime/test_graph.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Graph> Transposed(const std::vector<int32_t>& perm) {
  TestGraph branch;
  const ValueRef x = branch.Input("x", DType::kFloat32, SymShape::UnknownRank());
  branch.Output(branch.Op("Transpose", "turned", {x, branch.Ints("perm", perm)}));
  return std::make_shared<const Graph>(branch.graph);
}

// Images, one or many, with height and width exchanged, by a branch for each rank.
void Choose(TestGraph* g, ValueRef predicate, ValueRef x) {
  const int node = g->Op("If", "choose", {predicate, x}).node;
  g->graph.mutable_node(node).num_outputs = 1;
  g->graph.mutable_node(node).subgraphs = {Transposed({1, 0, 2}), Transposed({0, 2, 1, 3})};
  g->Output({node, 0});
}

TestGraph ByRank() {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, SymShape::UnknownRank());
  const ValueRef rank = g.Op("Rank", "rank", {x});
  Choose(&g, g.Op("Equal", "single", {rank, g.Int("three", 3)}), x);
  return g;
}

TEST(Untaken, ABranchThatIsKnownCountsAlone) {
  const auto compiled = ByRank().Compile();
  ASSERT_NE(compiled, nullptr);
  const auto many = compiled->Bind({Shape({7, 4, 5, 3})});
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ((*many)->why_not_batchable(), "");
  EXPECT_EQ((*many)->output_types()[0].shape, (SymShape{Dim::Rows(), 5, 4, 3}));
  const auto one = compiled->Bind({Shape({4, 5, 3})});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_FALSE((*one)->batchable());  // here dim 0 is moved
}

TEST(Untaken, WhatDoesNotFitIsAnErrorOfTheRunThatTakesIt) {
  TestGraph g;
  const ValueRef p = g.Input("p", DType::kBool, SymShape());
  Choose(&g, p, g.Input("x", DType::kFloat32, SymShape::UnknownRank()));
  const auto compiled = g.Compile();
  ASSERT_NE(compiled, nullptr);
  const auto plan = compiled->Bind({Shape(), Shape({2, 4, 5, 3})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<float> x(120, 1);
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 2).ok());
  for (const bool taken : {false, true, false}) {
    context.BindInput(0, &taken);
    context.BindInput(1, x.data());
    const absl::Status status = context.Run();
    if (!taken) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(context.Output(0).shape, Shape({2, 5, 4, 3}));
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'turned' (Transpose)"));
  }
}

// What both branches refuse is refused before the run, and by a model whatever comes.
TEST(Untaken, NoBranchFits) {
  const auto compiled = ByRank().Compile();
  ASSERT_NE(compiled, nullptr);
  const auto plan = compiled->Bind({Shape({4, 5})});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("'choose' (If)"));
}

TEST(Untaken, ConstantsOfABranchThatFoldToAnError) {
  TestGraph g, good, broken;
  const ValueRef p = g.Input("p", DType::kBool, SymShape());
  good.Output(good.Int("seven", 7));
  broken.Output(broken.Op("FloorDiv", "by_zero", {broken.Int("seven", 7), broken.Int("zero", 0)}));
  const int node = g.Op("If", "choose", {p}).node;
  g.graph.mutable_node(node).num_outputs = 1;
  g.graph.mutable_node(node).subgraphs = {std::make_shared<const Graph>(good.graph),
                                          std::make_shared<const Graph>(broken.graph)};
  g.Output({node, 0});
  for (const std::vector<std::string>& disabled : {std::vector<std::string>(), {"all"}}) {
    const auto compiled = g.Compile({.disabled_passes = disabled});
    ASSERT_NE(compiled, nullptr);
    const auto plan = compiled->Bind({Shape()});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExecContext context;
    ASSERT_TRUE(context.Prepare(*plan, 1).ok());
    for (const bool taken : {true, false}) {
      context.BindInput(0, &taken);
      const absl::Status status = context.Run();
      EXPECT_EQ(status.ok(), taken) << status;
      if (taken) {
        EXPECT_EQ(*context.Output(0).as<int32_t>(), 7);
      } else {
        EXPECT_THAT(std::string(status.message()), HasSubstr("'by_zero' (FloorDiv)"));
      }
    }
  }
}

// Each iteration hands every variable to the one before it.
TestGraph Rotation(int count, int iterations) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown(), 2});
  std::vector<ValueRef> variables;
  for (int k = 0; k + 1 < count; ++k)
    variables.push_back(g.Floats("v" + std::to_string(k), {}, {static_cast<float>(k)}));
  variables.push_back(x);
  const std::vector<DType> dtypes(variables.size(), DType::kFloat32);
  const int loop =
      AddLoop(&g, iterations, variables, dtypes, [](TestGraph*, const std::vector<ValueRef>& v) {
        std::vector<ValueRef> next(v.begin() + 2, v.end());
        next.push_back(v[1]);
        return next;
      });
  g.Output({loop, count - iterations});
  g.Output({loop, 1});
  return g;
}

TEST(Loops, SettleHoweverManyVariablesMove) {
  for (const int count : {16, 17, 40, 400}) {
    const auto compiled = Rotation(count, 5).Compile();
    ASSERT_NE(compiled, nullptr) << count;
    const auto plan = compiled->Bind({Shape({3, 2})});
    ASSERT_TRUE(plan.ok()) << count << ": " << plan.status();
    const std::vector<float> x{1, 2, 3, 4, 5, 6};
    ExecContext context;
    ASSERT_TRUE(context.Prepare(*plan, 3).ok());
    context.BindInput(0, x.data());
    const absl::Status status = context.Run();
    ASSERT_TRUE(status.ok()) << count << ": " << status;
    ASSERT_EQ(context.Output(0).shape, Shape({3, 2})) << count;
    EXPECT_EQ(context.Output(0).as<float>()[5], 6);
    EXPECT_EQ(context.Output(1).shape, Shape());
    EXPECT_EQ(*context.Output(1).as<float>(), 5);
  }
}

}  // namespace
}  // namespace floe
