#include <gtest/gtest.h>

#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

const SymShape kRows4 = {Dim::Unknown(), 4};

TEST(Prune, DropsWhatNoOutputNeedsAndKeepsInputs) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Input("unused", DType::kFloat32, kRows4);
  t.Op("Relu", "dead", {x});
  t.Output(t.Op("Tanh", "y", {x}));
  Prune(&t.graph);
  EXPECT_EQ(t.graph.size(), 3);
  EXPECT_EQ(CountOps(t.graph, "Relu"), 0);
  EXPECT_EQ(t.graph.inputs.size(), 2u);
}

}  // namespace
}  // namespace floe
