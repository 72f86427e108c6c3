#include <gtest/gtest.h>

#include "runtime/passes/pass_test_util.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

TEST(MergeCommonSubexpressions, EqualNodesOfEqualInputsAreOne) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const ValueRef a = t.Op("Mul", "a", {x, t.Floats("two", {1}, {2})});
  const ValueRef b = t.Op("Mul", "b", {x, t.Floats("also_two", {1}, {2})});
  t.Output(t.Op("Add", "sum", {t.Op("Exp", "ea", {a}), t.Op("Exp", "eb", {b})}));
  t.Output(t.Op("Exp", "again", {a}));
  MergeCommonSubexpressions(&t.graph);
  Prune(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Const"), 1);
  EXPECT_EQ(CountOps(t.graph, "Mul"), 1);
  EXPECT_EQ(CountOps(t.graph, "Exp"), 1);
  ASSERT_EQ(t.graph.outputs.size(), 2u);
  EXPECT_EQ(t.graph.node(t.graph.outputs[1].node).op->name, "Exp");
}

TEST(MergeCommonSubexpressions, ADifferenceInAttributesInputsOrConstantsCounts) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4),
                 y = t.Input("y", DType::kFloat32, kRows4);
  t.Output(t.Op("LeakyRelu", "a", {x}, {{"alpha", 0.1f}}));
  t.Output(t.Op("LeakyRelu", "b", {x}, {{"alpha", 0.2f}}));
  t.Output(t.Op("LeakyRelu", "c", {y}, {{"alpha", 0.1f}}));
  t.Output(t.Op("Sub", "d", {x, y}));
  t.Output(t.Op("Sub", "e", {y, x}));
  t.Output(t.Op("Add", "f", {x, t.Floats("zero", {1}, {0.0f})}));
  t.Output(t.Op("Add", "g", {x, t.Floats("minus_zero", {1}, {-0.0f})}));
  t.Output(t.Op("Add", "h", {x, t.Floats("scalar_zero", {}, {0.0f})}));
  std::vector<float> many(100, 1), other = many;
  other[50] = 2;  // in neither end
  t.Output(t.Floats("many", {100}, many));
  t.Output(t.Floats("other", {100}, other));
  const int before = t.graph.size();
  MergeCommonSubexpressions(&t.graph);
  EXPECT_EQ(t.graph.size(), before);
}

TEST(MergeCommonSubexpressions, RandomNumbersAndEffectsNever) {
  TestGraph t;
  const ValueRef shape = t.Ints("shape", {4});
  const ValueRef a = t.Op("RandomUniform", "a", {shape}, {{"dtype", DType::kFloat32}});
  const ValueRef b = t.Op("RandomUniform", "b", {shape}, {{"dtype", DType::kFloat32}});
  t.Output(t.Op("Sub", "difference", {a, b}));
  const ValueRef p = t.Input("p", DType::kBool, {});
  t.Op("Assert", "first", {p, p});
  t.Op("Assert", "second", {p, p});
  MergeCommonSubexpressions(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "RandomUniform"), 2);
  EXPECT_EQ(CountOps(t.graph, "Assert"), 2);
}

TEST(MergeCommonSubexpressions, EveryOutputOfANodeWithSeveral) {
  TestGraph t;
  const ValueRef x = t.Input("x", DType::kFloat32, kRows4);
  const auto split = [&](const std::string& name) {
    const ValueRef s =
        t.Op("Split", name, {t.Int("axis_" + name, 1), x}, {{"num_split", int64_t{2}}});
    t.graph.mutable_node(s.node).num_outputs = 2;
    return s.node;
  };
  const int a = split("a"), b = split("b");
  t.Output(t.Op("Sub", "y", {{a, 1}, {b, 1}}));
  MergeCommonSubexpressions(&t.graph);
  Prune(&t.graph);
  EXPECT_EQ(CountOps(t.graph, "Split"), 1);
  const Node& y = t.graph.node(t.graph.outputs[0].node);
  EXPECT_EQ(y.inputs[0], y.inputs[1]);
  EXPECT_EQ(y.inputs[1].output, 1);
}

}  // namespace
}  // namespace floe
