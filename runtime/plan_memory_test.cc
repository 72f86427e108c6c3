// The arena against what must be alive at once. A chain with bottlenecks needs its largest pair of
// neighbours and little more.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/exec_context.h"
#include "runtime/test_graph.h"
#include "runtime/test_memory.h"

namespace floe {
namespace {

ValueRef Dense(TestGraph* g, const std::string& name, ValueRef x, int64_t from, int64_t to) {
  return g->Op("MatMul", name,
               {x, g->Floats(name + "/w", {from, to}, std::vector<float>(from * to, 0.5f))});
}

// Inverted residuals: each block widens six times, bounds, narrows, and adds what came in where the
// width stays.
TestGraph Bottlenecks(const std::vector<int64_t>& widths) {
  TestGraph g;
  ValueRef h = g.Input("x", DType::kFloat32, {Dim::Unknown(), widths[0]});
  for (size_t i = 1; i < widths.size(); ++i) {
    const std::string block = "block" + std::to_string(i);
    const int64_t from = widths[i - 1], to = widths[i], wide = 6 * from;
    const ValueRef expanded =
        g.Op("Relu6", block + "/relu1", {Dense(&g, block + "/expand", h, from, wide)});
    const ValueRef mixed = g.Op("Sigmoid", block + "/sigmoid", {expanded});
    const ValueRef projected = Dense(&g, block + "/project", mixed, wide, to);
    h = from == to ? g.Op("Add", block + "/add", {h, projected}) : projected;
  }
  g.Output(g.Op("Softmax", "y", {h}));
  return g;
}

TEST(PlanMemory, ANetworkTakesLittleMoreThanItsLargestPair) {
  for (const std::vector<int64_t>& widths :
       std::vector<std::vector<int64_t>>{{24, 96, 96, 96, 96},
                                         {128, 96, 96, 64, 64, 64, 32},
                                         {32, 64, 64, 128, 128, 128},
                                         {48, 200, 200, 20, 20, 160}}) {
    for (const bool fuse : {true, false}) {
      const std::vector<std::string> off = {"fuse_epilogues", "fuse_elementwise"};
      const auto compiled =
          Bottlenecks(widths).Compile({.disabled_passes = fuse ? std::vector<std::string>{} : off});
      ASSERT_NE(compiled, nullptr);
      const auto plan = compiled->Bind({Shape({1, widths[0]})});
      ASSERT_TRUE(plan.ok()) << plan.status();
      for (const int64_t rows : {1, 8}) {
        const auto pair = static_cast<double>(LargestLivePair(**plan, rows));
        const auto arena = static_cast<double>((*plan)->ArenaBytes(rows));
        EXPECT_LE(arena, 1.3 * pair) << "first width " << widths[0] << ", fuse " << fuse;
        EXPECT_GE(arena, pair);
      }
    }
  }
}

TEST(PlanMemory, AStepWritesOverTheInputThatNobodyReadsAgain) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown(), 32});
  const ValueRef a = g.Op("Add", "a", {x, x});
  const ValueRef b = g.Op("Neg", "b", {a});
  const ValueRef c = g.Op("Sub", "c", {a, b});  // over b: a is read again
  g.Output(g.Op("Mul", "y", {a, c}));
  const auto compiled = g.Compile({.disabled_passes = {"fuse_elementwise"}});
  ASSERT_NE(compiled, nullptr);
  const auto plan = compiled->Bind({Shape({1, 32})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->ArenaBytes(1), 3 * 32 * sizeof(float));  // x, a, b
  ExecContext context(1);
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  for (int i = 0; i < 32; ++i) context.Input(0).as<float>()[i] = static_cast<float>(i);
  ASSERT_TRUE(context.Run().ok());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(context.Output(0).as<float>()[i], 8.0f * i * i) << i;
}

}  // namespace
}  // namespace floe
