// Steps whose shapes the run settles, in a context that has run them before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "runtime/exec_context.h"
#include "runtime/test_graph.h"

namespace floe {
namespace {

using testing::ElementsAre;

// Runs a graph of one input and one float32 output again and again.
class Repeated {
 public:
  explicit Repeated(const TestGraph& t)
      : compiled_(t.Compile()), type_(t.signature.inputs[0].type) {}

  std::vector<float> operator()(const void* input) {
    const auto plan = compiled_->Bind({type_.shape.At(1)});
    EXPECT_TRUE(plan.ok() && (*plan)->has_dynamic_steps()) << plan.status();
    if (!plan.ok() || !context_.Prepare(*plan, 1).ok()) return {};
    context_.BindInput(0, input);
    const absl::Status run = context_.Run();
    EXPECT_TRUE(run.ok()) << run;
    const TensorView& y = context_.Output(0);
    return {y.as<float>(), y.as<float>() + y.elements()};
  }

 private:
  std::shared_ptr<const CompiledSignature> compiled_;
  TensorType type_;
  ExecContext context_{1};
};

TEST(Settle, ShapesFollowTheValuesOfEachRun) {
  TestGraph t;
  const ValueRef dims = t.Input("dims", DType::kInt32, {1});
  t.Output(t.Op("Fill", "y", {dims, t.Floats("value", {}, {2})}));
  Repeated run(t);
  for (const int32_t size : {3, 5, 0, 3})
    EXPECT_EQ(run(&size), std::vector<float>(size, 2.0f)) << size;
}

TEST(Settle, ValuesChangeUnderShapesThatDoNot) {
  TestGraph t;
  const ValueRef mask = t.Input("mask", DType::kBool, {4});
  const ValueRef places =
      t.Op("Reshape", "places", {t.Op("Where", "where", {mask}), t.Ints("flat", {-1})});
  t.Output(
      t.Op("GatherV2", "y", {t.Floats("table", {4}, {10, 11, 12, 13}), places, t.Int("axis", 0)}));
  Repeated run(t);
  const bool even[] = {true, false, true, false}, odd[] = {false, true, false, true},
             most[] = {true, true, true, false};
  EXPECT_THAT(run(even), ElementsAre(10, 12));
  EXPECT_THAT(run(odd), ElementsAre(11, 13));
  EXPECT_THAT(run(most), ElementsAre(10, 11, 12));
  EXPECT_THAT(run(even), ElementsAre(10, 12));
}

}  // namespace
}  // namespace floe
