#include <gtest/gtest.h>

#include "runtime/passes/passes.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

TEST(RemoveIdentities, UsesGoToTheOriginal) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  t.Output(t.Op("Relu", "y", {t.Op("Identity", "i2", {t.Op("Identity", "i1", {x})})}));
  RemoveIdentities(&t.graph);
  EXPECT_EQ(t.graph.size(), 2);
}

}  // namespace
}  // namespace floe
