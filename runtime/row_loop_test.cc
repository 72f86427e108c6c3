// Loops over the rows of the batch are batched where each iteration keeps to its own row.
#include "runtime/row_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>

#include "runtime/exec_context.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::HasSubstr;
using Attributes = std::vector<std::pair<std::string, AttrValue>>;

const Attributes kElement{{"element_dtype", DType::kFloat32}};

// One iteration: what it is given, and what it hands on.
struct Iteration {
  TestGraph& g;
  ValueRef number, rows, in, out, sum;
  ValueRef item;  // of `in` at `number`
  ValueRef next_number, next_out, next_sum;

  ValueRef Shape() const { return g.Ints("element", {2}); }
  ValueRef Get(ValueRef list, ValueRef index) const {
    return g.Op("TensorListGetItem", "get", {list, index, Shape()}, kElement);
  }
  ValueRef Set(ValueRef index, ValueRef value) const {
    return g.Op("TensorListSetItem", "set", {out, index, value}, kElement);
  }
  void Give(ValueRef value) { next_out = Set(number, value); }
};

struct MapCase {
  const char* name;
  const char* why;  // part of the reason; empty: batchable
  std::function<void(Iteration&)> body;
  int first = 0;                                        // row
  std::function<ValueRef(Iteration&)> again = nullptr;  // besides "number < rows"
};

std::vector<ValueRef> Variables(TestGraph* g) {
  const SymShape any = SymShape::UnknownRank();
  return {g->Input("number", DType::kInt32, {}), g->Input("rows", DType::kInt32, {}),
          g->Input("in", DType::kVariant, {}), g->Input("out", DType::kVariant, {}),
          g->Input("sum", DType::kFloat32, any)};
}

// For x [rows, 2]: takes its rows one after the other and puts what the body gives side by side.
TestGraph MapOverRows(const MapCase& c) {
  TestGraph test, step, g;
  std::vector<ValueRef> v = Variables(&test);
  ValueRef again = test.Op("Less", "more", {v[0], v[1]});
  if (c.again != nullptr) {
    Iteration iteration{test, v[0], v[1], v[2], v[3], v[4], {}, {}, {}, {}};
    again = test.Op("LogicalAnd", "both", {again, c.again(iteration)});
  }
  test.Output(again);

  v = Variables(&step);
  Iteration iteration{step, v[0], v[1], v[2], v[3], v[4], {}, {}, v[3], v[4]};
  iteration.item = iteration.Get(v[2], v[0]);
  iteration.next_number = step.Op("Add", "next", {v[0], step.Int("one", 1)});
  c.body(iteration);
  for (const ValueRef out :
       {iteration.next_number, v[1], v[2], iteration.next_out, iteration.next_sum})
    step.Output(step.Op("Identity", "out", {out}));

  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown(), 2});
  const ValueRef element = g.Ints("element", {2});
  const ValueRef rows = g.Op("StridedSlice", "n",
                             {g.Op("Shape", "sh", {x}, {{"out_type", DType::kInt32}}),
                              g.Ints("b", {0}), g.Ints("e", {1}), g.Ints("s", {1})},
                             {{"shrink_axis_mask", int64_t{1}}});
  const ValueRef in = g.Op("TensorListFromTensor", "in", {x, element}, kElement);
  const ValueRef out = g.Op("TensorListReserve", "made", {element, rows}, kElement);
  const int loop =
      g.Op("While", "loop", {g.Int("first", c.first), rows, in, out, g.Floats("sum", {2}, {0, 0})})
          .node;
  g.graph.mutable_node(loop).num_outputs = 5;
  g.graph.mutable_node(loop).subgraphs = {std::make_shared<const Graph>(test.graph),
                                          std::make_shared<const Graph>(step.graph)};
  g.Output(g.Op("TensorListStack", "y", {ValueRef{loop, 3}, element}, kElement));
  return g;
}

ValueRef AsFloat(const Iteration& r, ValueRef value) {
  return r.g.Op("Cast", "float", {value}, {{"DstT", DType::kFloat32}});
}

// What a iteration does with its element, its number and the number of rows.
std::vector<MapCase> ElementAndNumberCases() {
  std::vector<MapCase> cases;
  cases.push_back({"each doubled", "", [](Iteration& r) {
                     r.Give(r.g.Op("Add", "d", {r.item, r.item}));
                   }});
  cases.push_back(
      {"a row's own choice", "", [](Iteration& r) {
         TestGraph yes, no;
         yes.Output(yes.Op("Neg", "n", {yes.Input("a", DType::kFloat32, {2})}));
         no.Output(no.Input("a", DType::kFloat32, {2}));
         const ValueRef high = r.g.Op("Greater", "high", {r.item, r.g.Floats("c", {2}, {1, 1})});
         const ValueRef all = r.g.Op("All", "all", {high, r.g.Ints("axis", {0})});
         const ValueRef choice = r.g.Op("If", "choice", {all, r.item});
         r.g.graph.mutable_node(choice.node).subgraphs = {std::make_shared<const Graph>(yes.graph),
                                                          std::make_shared<const Graph>(no.graph)};
         r.Give(choice);
       }});
  cases.push_back(
      {"the number added", "'d' (FusedElementwise) inside 'loop' (While)", [](Iteration& r) {
         r.Give(r.g.Op("Add", "d", {r.item, AsFloat(r, r.number)}));
       }});
  cases.push_back({"the number of rows added", "'d' (FusedElementwise)", [](Iteration& r) {
                     r.Give(r.g.Op("Add", "d", {r.item, AsFloat(r, r.rows)}));
                   }});
  cases.push_back({"the first row added", "'get' (TensorListGetItem)", [](Iteration& r) {
                     r.Give(r.g.Op("Add", "d", {r.item, r.Get(r.in, r.g.Int("first", 0))}));
                   }});
  cases.push_back({"backwards", "'next' (Add)", [](Iteration& r) {
                     const ValueRef left = r.g.Op("Sub", "left", {r.rows, r.next_number});
                     r.next_out = r.Set(left, r.item);
                   }});
  cases.push_back({"a running sum", "'loop' (While)", [](Iteration& r) {
                     r.next_sum = r.g.Op("Add", "run", {r.sum, r.item});
                     r.Give(r.next_sum);
                   }});
  cases.push_back(
      {"a count of iterations", "'loop' (While)", [](Iteration& r) {
         r.next_sum = r.g.Op("Add", "run", {r.sum, r.g.Floats("one more", {2}, {1, 1})});
         r.Give(r.g.Op("Add", "d", {r.item, r.sum}));
       }});
  cases.push_back({"always the first place", "'set' (TensorListSetItem)",
                   [](Iteration& r) { r.next_out = r.Set(r.g.Int("first", 0), r.item); }});
  cases.push_back({"every second row", "rows", [](Iteration& r) {
                     r.next_number = r.g.Op("Add", "next", {r.number, r.g.Int("two", 2)});
                     r.Give(r.item);
                   }});
  cases.push_back({"without the first row", "rows", [](Iteration& r) { r.Give(r.item); }, 1});
  cases.push_back({"counted twice", "", [](Iteration& r) { r.Give(r.item); }, 0,
                   [](Iteration& r) {
                     return r.g.Op("Less", "again", {r.number, r.rows});
                   }});
  return cases;
}

// What a loop does with its lists, or with loops inside it.
std::vector<MapCase> ListAndNestedCases() {
  std::vector<MapCase> cases;
  cases.push_back(
      {"a list that is not its own", "'loop' (While)", [](Iteration& r) {
         r.next_out = r.g.Op("TensorListSetItem", "set", {r.in, r.number, r.item}, kElement);
       }});
  cases.push_back(
      {"doubled once more for each row", "'loop' (While)", [](Iteration& r) {
         r.Give(r.item);
         const ValueRef all = r.g.Op("TensorListStack", "all", {r.next_out, r.Shape()}, kElement);
         r.next_out = r.g.Op("TensorListFromTensor", "again",
                             {r.g.Op("Add", "twice", {all, all}), r.Shape()}, kElement);
       }});
  cases.push_back(
      {"a number that is forgotten inside", "'loop' (While)", [](Iteration& r) {
         TestGraph once, forget;
         once.Output(once.Op("Less", "l", {once.Input("j", DType::kInt32, {}), once.Int("c", 1)}));
         forget.Input("j", DType::kInt32, {});
         forget.Output(forget.Int("zero", 0));
         const ValueRef loop = r.g.Op("While", "forget", {r.number});
         Node& node = r.g.graph.mutable_node(loop.node);
         node.num_outputs = 1;
         node.subgraphs = {std::make_shared<const Graph>(once.graph),
                           std::make_shared<const Graph>(forget.graph)};
         r.Give(r.Get(r.in, loop));
       }});
  cases.push_back(
      {"until a row says so", "rows",
       [](Iteration& r) {
         r.next_sum = r.item;
         r.Give(r.item);
       },
       0,
       [](Iteration& r) {
         const ValueRef low = r.g.Op("Less", "low", {r.sum, r.g.Floats("c", {2}, {3, 3})});
         return r.g.Op("All", "all", {low, r.g.Ints("axis", {0})});
       }});
  return cases;
}

std::vector<MapCase> Cases() {
  std::vector<MapCase> cases = ElementAndNumberCases();
  std::ranges::move(ListAndNestedCases(), std::back_inserter(cases));
  return cases;
}

std::vector<float> Answers(const CompiledSignature& compiled, const std::vector<float>& x) {
  const int64_t rows = static_cast<int64_t>(x.size()) / 2;
  const auto plan = compiled.Bind({Shape({rows, 2})});
  EXPECT_TRUE(plan.ok()) << plan.status();
  ExecContext context(1);
  EXPECT_TRUE(context.Prepare(*plan, rows).ok());
  context.BindInput(0, x.data());
  const absl::Status run = context.Run();
  EXPECT_TRUE(run.ok()) << run;
  const TensorView y = context.Output(0);
  EXPECT_EQ(y.shape, Shape({rows, 2}));
  return {y.as<float>(), y.as<float>() + y.shape.elements()};
}

TEST(RowLoop, IsBatchedWhereEachRoundKeepsToItsRow) {
  for (const MapCase& c : Cases()) {
    const auto compiled = MapOverRows(c).Compile();
    ASSERT_NE(compiled, nullptr) << c.name;
    const auto plan = compiled->Bind({Shape({3, 2})});
    ASSERT_TRUE(plan.ok()) << c.name << ": " << plan.status();
    EXPECT_EQ((*plan)->batchable(), *c.why == 0) << c.name << ": " << (*plan)->why_not_batchable();
    EXPECT_THAT((*plan)->why_not_batchable(), HasSubstr(c.why)) << c.name;
    if (*c.why != 0) continue;
    const std::vector<float> x{0.5, 4, 2, 3, -1, 7};
    std::vector<float> alone;
    for (size_t row = 0; row < 3; ++row) {
      for (const float value : Answers(*compiled, {x[2 * row], x[2 * row + 1]}))
        alone.push_back(value);
    }
    EXPECT_EQ(Answers(*compiled, x), alone) << c.name;
  }
}

}  // namespace
}  // namespace floe
