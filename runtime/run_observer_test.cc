// What an observer of runs is told: every step once, in order, nested ones inside their caller's.
#include "runtime/run_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/exec_context.h"
#include "runtime/test_loops.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

// Writes down "node(" at each start and "node)" at each end.
class Recorder : public RunObserver {
 public:
  void StepStarts(const ObservedStep& step) override { said.push_back(Name(step) + "("); }
  void StepEnds(const ObservedStep& step) override {
    said.push_back(Name(step) + ")");
    const Step& of = step.plan->steps()[step.step];
    outputs.push_back(of.outputs.empty() ? "" : step.slots[of.outputs[0]].shape.ToString());
  }
  static std::string Name(const ObservedStep& step) {
    return step.plan->graph().node(step.plan->steps()[step.step].node).name;
  }
  std::vector<std::string> said, outputs;
};

class Observed : public testing::Test {
 protected:
  // Binds `g` to one float input of these values and runs it `times` times.
  absl::Status Run(const TestGraph& g, std::vector<float> x, int times = 1) {
    CompileOptions options;
    options.disabled_passes = {"all"};
    const auto compiled = g.Compile(options);
    auto plan = compiled->Bind({Shape({static_cast<int64_t>(x.size())})});
    if (!plan.ok()) return plan.status();
    for (int i = 0; i < times; ++i) {
      const int64_t rows = (*plan)->has_rows() ? static_cast<int64_t>(x.size()) : 1;
      if (absl::Status ready = context_.Prepare(*plan, rows); !ready.ok()) return ready;
      context_.BindInput(0, x.data());
      if (absl::Status ran = context_.Run(); !ran.ok()) return ran;
    }
    return absl::OkStatus();
  }

  ExecContext context_{1};
  Recorder recorder_;
};

TestGraph ObservedChain() {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {Dim::Unknown()});
  g.Output(g.Op("Exp", "last", {g.Op("Neg", "second", {g.Op("Abs", "first", {x})})}));
  return g;
}

TEST_F(Observed, StepsOfAChainComeInOrder) {
  context_.Observe(&recorder_);
  ASSERT_TRUE(Run(ObservedChain(), {1, 2, 3}).ok());
  EXPECT_THAT(recorder_.said,
              ElementsAre("first(", "first)", "second(", "second)", "last(", "last)"));
  EXPECT_THAT(recorder_.outputs, ElementsAre("[3]", "[3]", "[3]"));
}

TEST_F(Observed, NobodyIsToldOnceItIsUnset) {
  context_.Observe(&recorder_);
  context_.Observe(nullptr);
  ASSERT_TRUE(Run(ObservedChain(), {1}).ok());
  EXPECT_THAT(recorder_.said, IsEmpty());
}

// Each round of the body is told, between start and end of the loop, and the same again in the
// next run, whose nested frames are there already.
TEST_F(Observed, ALoopsStepsLieInsideIt) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {2});
  const int loop =
      AddLoop(&g, 2, {x}, {DType::kFloat32}, [](TestGraph* b, const std::vector<ValueRef>& v) {
        return std::vector<ValueRef>{b->Op("Neg", "negated", {v[1]})};
      });
  g.Output(g.Op("Abs", "after", {ValueRef{loop, 1}}));
  std::vector<std::string> once{"loop("};
  for (int i = 0; i < 2; ++i) {
    for (const char* name : {"again", "next", "negated"})
      for (const char* part : {"(", ")"}) once.push_back(absl::StrCat(name, part));
  }
  for (const char* said : {"again(", "again)", "loop)", "after(", "after)"}) once.push_back(said);
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());

  ASSERT_TRUE(Run(g, {1, 2}).ok());
  context_.Observe(&recorder_);
  ASSERT_TRUE(Run(g, {1, 2}, 2).ok());
  EXPECT_THAT(recorder_.said, ElementsAreArray(twice));
}

TEST_F(Observed, OnlyTheBranchTakenIsTold) {
  TestGraph yes, no, g;
  const SymShape shape{2};
  yes.Output(yes.Op("Neg", "yes", {yes.Input("v", DType::kFloat32, shape)}));
  no.Output(no.Op("Abs", "no", {no.Input("v", DType::kFloat32, shape)}));
  const ValueRef x = g.Input("x", DType::kFloat32, shape);
  const ValueRef sum = g.Op("Sum", "sum", {x, g.Ints("axis", {0})});
  const ValueRef test = g.Op("Less", "test", {sum, g.Floats("limit", {}, {0})});
  const ValueRef chosen = g.Op("If", "if", {test, x});
  g.graph.mutable_node(chosen.node).subgraphs = {std::make_shared<const Graph>(yes.graph),
                                                 std::make_shared<const Graph>(no.graph)};
  g.Output(chosen);
  context_.Observe(&recorder_);
  ASSERT_TRUE(Run(g, {1, 2}).ok());
  EXPECT_THAT(recorder_.said,
              ElementsAre("sum(", "sum)", "test(", "test)", "if(", "no(", "no)", "if)"));
}

// What Where finds is known only when it ends.
TEST_F(Observed, AStepSettledByTheRunEndsWithItsShapes) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {4});
  g.Output(g.Op("Where", "where", {g.Op("Greater", "positive", {x, g.Floats("z", {}, {0})})}));
  context_.Observe(&recorder_);
  ASSERT_TRUE(Run(g, {1, -1, 2, 3}).ok());
  EXPECT_THAT(recorder_.outputs, ElementsAre("[4]", "[3,1]"));
}

TEST_F(Observed, AFailedStepEndsAndNothingFollows) {
  TestGraph g;
  const ValueRef x = g.Input("x", DType::kFloat32, {2});
  const ValueRef index = g.Op("Cast", "index", {x}, {{"DstT", DType::kInt32}});
  const ValueRef taken =
      g.Op("GatherV2", "take", {g.Floats("table", {1}, {7}), index, g.Int("axis", 0)});
  g.Output(g.Op("Neg", "after", {taken}));
  context_.Observe(&recorder_);
  EXPECT_FALSE(Run(g, {0, 5}).ok());
  EXPECT_THAT(recorder_.said, ElementsAre("index(", "index)", "take(", "take)"));
}

}  // namespace
}  // namespace floe
