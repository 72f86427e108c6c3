// TensorLists through loops: written in place however many steps there are, and rows kept apart.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/lists.h"
#include "runtime/exec_context.h"
#include "runtime/run_observer.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

constexpr DType kItems = DType::kFloat32;

std::vector<std::pair<std::string, AttrValue>> Element() { return {{"element_dtype", kItems}}; }

class Collecting : public testing::TestWithParam<Container> {};

// No step may touch what other steps stored: lists are never copied, and what a step asks of the
// pool does not depend on how many there are.
TEST_P(Collecting, CopiesNoElementsHoweverManySteps) {
  for (const int steps : {10, 1000, 10000}) {
    const auto compiled = CollectingLoop(GetParam(), steps, 2).Compile();
    ASSERT_NE(compiled, nullptr);
    const auto plan = compiled->Bind({Shape({2})});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExecContext context;
    for (int repeat = 0; repeat < 2; ++repeat) {
      const float x[2] = {.5f, static_cast<float>(repeat)};
      const int64_t before = copied_list_elements;
      ASSERT_TRUE(context.Prepare(*plan, 1).ok());
      context.BindInput(0, x);
      const absl::Status status = context.Run();
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(copied_list_elements - before, 0) << steps << " steps";
      ASSERT_EQ(context.Output(0).shape, Shape({steps, 2}));
      const float* y = context.Output(0).as<float>();
      double sum = 0;
      for (int t = 0; t < steps; ++t) {
        ASSERT_EQ(y[2 * t], .5f + static_cast<float>(t));
        ASSERT_EQ(y[2 * t + 1], x[1] + static_cast<float>(t));
        sum += y[2 * t];
      }
      EXPECT_NEAR(context.Output(1).as<float>()[0] / sum, 1, 1e-3);  // added up in float32
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Containers, Collecting,
                         testing::Values(Container::kList, Container::kPushedList,
                                         Container::kArray, Container::kGrowingArray),
                         [](const auto& info) { return ContainerName(info.param); });

// h where t < length, of the rows that are done the old one: the masked step of an RNN.
ValueRef MaskedStep(TestGraph* b, ValueRef t, ValueRef h, ValueRef item, ValueRef lengths) {
  // A value of its own, whose shape nothing but the element's tells.
  const ValueRef same = b->Op("Mul", "same", {item, b->Floats("factor", {}, {1})});
  const ValueRef next = b->Op("Tanh", "tanh", {b->Op("Add", "add", {h, same})});
  const ValueRef going = b->Op("Less", "going", {t, lengths});
  const ValueRef mask = b->Op("ExpandDims", "mask", {going, b->Int("axis", 1)});
  return b->Op("SelectV2", "masked", {mask, next, h});
}

// h = tanh(h + x[:, t]) for each of three steps, kept from `lengths` on; all h as [rows, 3, 2]. `x`
// is [rows, 3, 2], `h` [rows, 2], `lengths` [rows].
TestGraph Recurrent(bool arrays) {
  TestGraph g;
  const ValueRef x = g.Input("x", kItems, {Dim::Unknown(), 3, 2}),
                 h = g.Input("h", kItems, {Dim::Unknown(), 2}),
                 lengths = g.Input("lengths", DType::kInt32, {Dim::Unknown()});
  const ValueRef major = g.Op("Transpose", "major", {x, g.Ints("perm", {1, 0, 2})});
  ValueRef stack;
  if (arrays) {
    const std::vector<std::pair<std::string, AttrValue>> attrs{{"dtype", kItems}};
    const int in = g.Op("TensorArrayV3", "in", {g.Int("size", 3)}, attrs).node,
              out = g.Op("TensorArrayV3", "out", {g.Int("size2", 3)}, attrs).node;
    const ValueRef steps = g.Ints("steps", {0, 1, 2});
    const ValueRef filled =
        g.Op("TensorArrayScatterV3", "scatter", {{in, 0}, steps, major, {in, 1}});
    const std::vector<DType> dtypes{DType::kResource, kItems, DType::kResource,
                                    kItems,           kItems, DType::kInt32};
    const int loop = AddLoop(
        &g, 3, {{in, 0}, filled, {out, 0}, {out, 1}, h, lengths}, dtypes,
        [&](TestGraph* b, const std::vector<ValueRef>& v) {
          const ValueRef item = b->Op("TensorArrayReadV3", "read", {v[1], v[0], v[2]}, attrs);
          const ValueRef next = MaskedStep(b, v[0], v[5], item, v[6]);
          return std::vector<ValueRef>{
              v[1], v[2], v[3], b->Op("TensorArrayWriteV3", "write", {v[3], v[0], next, v[4]}),
              next, v[6]};
        });
    stack = g.Op("TensorArrayGatherV3", "gather", {{out, 0}, steps, {loop, 4}}, attrs);
  } else {
    const ValueRef in =
        g.Op("TensorListFromTensor", "in", {major, g.Ints("element", {-1, 2})}, Element());
    const ValueRef out = g.Op("TensorListReserve", "out",
                              {g.Ints("element2", {-1, 2}), g.Int("size", 3)}, Element());
    const int loop = AddLoop(
        &g, 3, {in, out, h, lengths}, {DType::kVariant, DType::kVariant, kItems, DType::kInt32},
        [](TestGraph* b, const std::vector<ValueRef>& v) {
          const ValueRef item = b->Op("TensorListGetItem", "get",
                                      {v[1], v[0], b->Ints("element", {-1, -1})}, Element());
          const ValueRef next = MaskedStep(b, v[0], v[3], item, v[4]);
          return std::vector<ValueRef>{
              v[1], b->Op("TensorListSetItem", "set", {v[2], v[0], next}, Element()), next, v[4]};
        });
    stack =
        g.Op("TensorListStack", "stack", {ValueRef{loop, 2}, g.Ints("shape", {-1, 2})}, Element());
  }
  g.Output(g.Op("Transpose", "y", {stack, g.Ints("perm2", {1, 0, 2})}));
  return g;
}

class RecurrentLoop : public testing::TestWithParam<bool> {};

TEST_P(RecurrentLoop, IsProvedRowWiseAndIs) {
  const auto compiled = Recurrent(GetParam()).Compile();
  ASSERT_NE(compiled, nullptr);
  ExecContext context;
  for (const int64_t rows : {1, 2, 5, 1}) {
    const auto plan = compiled->Bind({Shape({rows, 3, 2}), Shape({rows, 2}), Shape({rows})});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ((*plan)->why_not_batchable(), "");
    std::vector<float> x, h;
    x.reserve(rows * 6);
    h.reserve(rows * 2);
    for (int64_t i = 0; i < rows * 6; ++i) x.push_back(static_cast<float>(i) * .125f - 1);
    for (int64_t i = 0; i < rows * 2; ++i) h.push_back(static_cast<float>(i) * .25f);
    std::vector<int32_t> lengths;
    lengths.reserve(rows);
    for (int32_t r = 0; r < rows; ++r) lengths.push_back(3 - r % 4);
    ASSERT_TRUE(context.Prepare(*plan, rows).ok());
    context.BindInput(0, x.data());
    context.BindInput(1, h.data());
    context.BindInput(2, lengths.data());
    const absl::Status status = context.Run();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(context.Output(0).shape, Shape({rows, 3, 2}));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < 2; ++c) {
        double state = h[r * 2 + c];
        for (int64_t t = 0; t < 3; ++t) {
          if (t < lengths[r]) state = std::tanh(state + x[(r * 3 + t) * 2 + c]);
          EXPECT_NEAR(context.Output(0).as<float>()[(r * 3 + t) * 2 + c], state, 1e-6)
              << "row " << r << " of " << rows << ", step " << t;
        }
      }
    }
  }
}

// Steps of these names whose shapes the run had to settle.
class SettledSteps : public RunObserver {
 public:
  explicit SettledSteps(std::set<std::string> names) : names_(std::move(names)) {}
  void StepStarts(const ObservedStep& observed) override {
    const Step& step = observed.plan->steps()[observed.step];
    if (names_.count(observed.plan->graph().node(step.node).name) == 0) return;
    ++(step.dynamic ? settled : planned);
  }
  void StepEnds(const ObservedStep&) override {}
  int settled = 0, planned = 0;

 private:
  const std::set<std::string> names_;
};

// A loop's plan knows the elements of the lists that it is handed. The step that reads an element
// shows it where it lies, which only the run knows.
TEST_P(RecurrentLoop, PlansWhatFollowsFromElements) {
  const auto compiled = Recurrent(GetParam()).Compile({.disabled_passes = {"fuse_elementwise"}});
  ASSERT_NE(compiled, nullptr);
  const auto plan = compiled->Bind({Shape({2, 3, 2}), Shape({2, 2}), Shape({2})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  SettledSteps observer({"add", "tanh", "masked"});
  context.Observe(&observer);
  const std::vector<float> x(12, 1), h(4, 0);
  const std::vector<int32_t> lengths(2, 3);
  ASSERT_TRUE(context.Prepare(*plan, 2).ok());
  context.BindInput(0, x.data());
  context.BindInput(1, h.data());
  context.BindInput(2, lengths.data());
  ASSERT_TRUE(context.Run().ok());
  EXPECT_EQ(observer.settled, 0);
  EXPECT_EQ(observer.planned, 9);
}

INSTANTIATE_TEST_SUITE_P(Containers, RecurrentLoop, testing::Bool(), [](const auto& info) {
  return info.param ? "TensorArray" : "TensorList";
});

// Nothing but the elements of the lists tells one number of rows from another.
TEST(ListLoop, OneContextForListsOfSeveralShapes) {
  TestGraph g;
  const ValueRef x = g.Input("x", kItems, {Dim::Unknown(), 3, 2});
  const ValueRef major = g.Op("Transpose", "major", {x, g.Ints("perm", {1, 0, 2})});
  const ValueRef in =
      g.Op("TensorListFromTensor", "in", {major, g.Ints("element", {-1, 2})}, Element());
  const ValueRef out =
      g.Op("TensorListReserve", "out", {g.Ints("element2", {-1, 2}), g.Int("size", 3)}, Element());
  const int loop =
      AddLoop(&g, 3, {in, out}, {DType::kVariant, DType::kVariant},
              [](TestGraph* b, const std::vector<ValueRef>& v) {
                const ValueRef item = b->Op("TensorListGetItem", "get",
                                            {v[1], v[0], b->Ints("element", {-1, 2})}, Element());
                const ValueRef twice = b->Op("Add", "twice", {item, item});
                return std::vector<ValueRef>{
                    v[1], b->Op("TensorListSetItem", "set", {v[2], v[0], twice}, Element())};
              });
  const ValueRef stack =
      g.Op("TensorListStack", "stack", {ValueRef{loop, 2}, g.Ints("shape", {-1, 2})}, Element());
  g.Output(g.Op("Transpose", "y", {stack, g.Ints("perm2", {1, 0, 2})}));
  const auto compiled = g.Compile();
  ASSERT_NE(compiled, nullptr);
  ExecContext context;
  for (const int64_t rows : {2, 1, 5, 2}) {
    const auto plan = compiled->Bind({Shape({rows, 3, 2})});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE((*plan)->batchable()) << (*plan)->why_not_batchable();
    std::vector<float> values;
    values.reserve(rows * 6);
    for (int64_t i = 0; i < rows * 6; ++i) values.push_back(static_cast<float>(i));
    ASSERT_TRUE(context.Prepare(*plan, rows).ok());
    context.BindInput(0, values.data());
    const absl::Status status = context.Run();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(context.Output(0).shape, Shape({rows, 3, 2}));
    for (int64_t i = 0; i < rows * 6; ++i)
      ASSERT_EQ(context.Output(0).as<float>()[i], 2 * values[i]) << rows;
  }
}

// What stands beside constants, or at a place that the request says, is not proved.
TEST(ListLoop, MixesAreNotProved) {
  const auto why = [](bool constants, bool moving) {
    TestGraph g;
    const ValueRef x = g.Input("x", kItems, {Dim::Unknown(), 2});
    const ValueRef begin =
        constants ? g.Op("TensorListFromTensor", "begin",
                         {g.Floats("numbers", {2, 1, 2}, {1, 2, 3, 4}), g.Ints("element", {-1, 2})},
                         Element())
                  : g.Op("TensorListReserve", "begin",
                         {g.Ints("element", {-1, 2}), g.Int("size", 2)}, Element());
    const ValueRef list = g.Op("TensorListSetItem", "set", {begin, g.Int("at", 0), x}, Element());
    const ValueRef from =
        moving ? g.Op("Cast", "from", {g.Op("Max", "largest", {x, g.Ints("axes", {0, 1})})},
                      {{"DstT", DType::kInt32}})
               : g.Int("from", 0);
    g.Output(g.Op("TensorListGetItem", "get", {list, from, g.Ints("shape", {-1, 2})}, Element()));
    const auto plan = g.Compile()->Bind({Shape({3, 2})});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return (*plan)->why_not_batchable();
  };
  EXPECT_EQ(why(false, false), "");
  EXPECT_NE(why(true, false), "");
  EXPECT_NE(why(false, true), "");
}

}  // namespace
}  // namespace floe
