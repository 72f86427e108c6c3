// Functional control flow from a GraphDef's library: calls, If and While, with rows and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "model/import/import.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"

namespace floe {
namespace {

using testing::HasSubstr;

// y = x after n iterations of x = relu(x) * 2 - 1, i counted in a loop variable; then double(x) by
// a call.
constexpr char kLoop[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
  node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
  node { name: "n" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
  node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
  node { name: "loop" op: "While" input: "zero" input: "n" input: "two" input: "x"
         attr { key: "cond" value { func { name: "test" } } } attr { key: "body" value { func { name: "step" } } }
         attr { key: "T" value { list { type: DT_INT32 type: DT_INT32 type: DT_FLOAT type: DT_FLOAT } } } }
  node { name: "call" op: "PartitionedCall" input: "loop:3" attr { key: "f" value { func { name: "double" } } } }
  node { name: "y" op: "Identity" input: "call" attr { key: "T" value { type: DT_FLOAT } } }
  library {
    function { signature { name: "test" input_arg { name: "i" type: DT_INT32 } input_arg { name: "n" type: DT_INT32 } input_arg { name: "c" type: DT_FLOAT } input_arg { name: "x" type: DT_FLOAT }
                           output_arg { name: "again" type: DT_BOOL } }
      node_def { name: "less" op: "Less" input: "i" input: "n" attr { key: "T" value { type: DT_INT32 } } }
      ret { key: "again" value: "less:z:0" } }
    function { signature { name: "step" input_arg { name: "i" type: DT_INT32 } input_arg { name: "n" type: DT_INT32 } input_arg { name: "c" type: DT_FLOAT } input_arg { name: "x" type: DT_FLOAT }
                           output_arg { name: "i_next" type: DT_INT32 } output_arg { name: "n_same" type: DT_INT32 } output_arg { name: "c_same" type: DT_FLOAT } output_arg { name: "x_next" type: DT_FLOAT } }
      node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
      node_def { name: "fone" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
      node_def { name: "add" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
      node_def { name: "relu" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
      node_def { name: "mul" op: "Mul" input: "relu:activations:0" input: "c" attr { key: "T" value { type: DT_FLOAT } } }
      node_def { name: "sub" op: "Sub" input: "mul:z:0" input: "fone:output:0" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "i_next" value: "add:z:0" } ret { key: "n_same" value: "n" } ret { key: "c_same" value: "c" } ret { key: "x_next" value: "sub:z:0" } }
    function { signature { name: "double" input_arg { name: "v" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "sum" op: "AddV2" input: "v" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "r" value: "sum:z:0" } }
  })";

absl::StatusOr<std::shared_ptr<const Model>> Load(const std::string& text,
                                                  const std::vector<std::string>& fetches = {}) {
  ImportOptions options;
  options.fetches = fetches;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportBytes(text, options));
  return Model::Create({{}, std::move(imported.graph), std::move(imported.signatures)}, {});
}

float LoopReference(float x, int iterations) {
  for (int i = 0; i < iterations; ++i) x = std::max(x, 0.f) * 2 - 1;
  return 2 * x;
}

// An If whose branch asserts what does not hold, with nothing that waits for it.
std::string IdleAssert(const std::string& attributes) {
  const std::string text =
      " attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { tensor { "
      "dtype: DT_STRING tensor_shape {} string_val: 'no' } } }";
  return R"(
    node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { dim { size: 2 } } } } }
    node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'shape' value { shape {} } } }
    node { name: 'y' op: 'If' input: 'p' input: 'x' attr { key: 'Tin' value { list { type: DT_FLOAT } } }
           attr { key: 'Tout' value { list { type: DT_FLOAT } } } attr { key: 'then_branch' value { func { name: 'f' } } }
           attr { key: 'else_branch' value { func { name: 'f' } } } )" +
         attributes + R"( }
    library { function { signature { name: 'f' input_arg { name: 'v' type: DT_FLOAT } output_arg { name: 'r' type: DT_FLOAT } }
      node_def { name: 'never' op: 'Const' attr { key: 'dtype' value { type: DT_BOOL } }
                 attr { key: 'value' value { tensor { dtype: DT_BOOL tensor_shape {} bool_val: false } } } }
      node_def { name: 'what' op: 'Const' )" +
         text + R"( }
      node_def { name: 'assert' op: 'Assert' input: 'never:output:0' input: 'what:output:0' attr { key: 'T' value { list { type: DT_STRING } } } }
      node_def { name: 'id' op: 'Identity' input: 'v' attr { key: 'T' value { type: DT_FLOAT } } }
      ret { key: 'r' value: 'id:output:0' } } })";
}

TEST(If, EffectsThatNothingWaitsForRunUnlessTensorFlowMakesSwitchesOfIt) {
  for (const bool lowered : {false, true}) {
    const auto model = Load(
        IdleAssert(lowered ? "attr { key: '_lower_using_switch_merge' value { b: true } }" : ""));
    ASSERT_TRUE(model.ok()) << model.status();
    const CompiledSignature& signature = (*model)->Find("")->default_variant();
    std::vector<Shape> shapes;
    for (const SignatureTensor& input : signature.signature().inputs)
      shapes.push_back(input.key == "x" ? Shape({2}) : Shape());
    const auto plan = signature.Bind(shapes);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExecContext context;
    ASSERT_TRUE(context.Prepare(*plan, 0).ok());
    for (int i = 0; i < 2; ++i) std::memset(context.Input(i).data, 0, context.Input(i).bytes());
    EXPECT_EQ(context.Run().ok(), lowered);
  }
}

TEST(While, RunsRowWiseForEveryBatchSize) {
  const auto model = Load(kLoop);
  ASSERT_TRUE(model.ok()) << model.status();
  const CompiledSignature& signature = (*model)->Find("")->default_variant();
  ExecContext context;
  for (int64_t rows : {1, 2, 5}) {
    const auto plan = signature.Bind({Shape({rows, 2})});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ((*plan)->why_not_batchable(), "");
    for (int repeat = 0; repeat < 2; ++repeat) {
      std::vector<float> x;
      for (int64_t i = 0; i < rows * 2; ++i) x.push_back(static_cast<float>(i) * .75f - 1);
      ASSERT_TRUE(context.Prepare(*plan, rows).ok());
      context.BindInput(0, x.data());
      const absl::Status status = context.Run();
      ASSERT_TRUE(status.ok()) << status;
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_FLOAT_EQ(context.Output(0).as<float>()[i], LoopReference(x[i], 3))
            << rows << " rows, element " << i;
    }
  }
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(While, ZeroRoundsGiveTheInitialValues) {
  const auto model = Load(Replaced(kLoop, "int_val: 3", "int_val: 0"));
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = (*model)->Find("")->default_variant().Bind({Shape({1, 2})});
  ASSERT_TRUE(plan.ok());
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  const float x[2] = {-4, 7};
  context.BindInput(0, x);
  ASSERT_TRUE(context.Run().ok());
  EXPECT_EQ(context.Output(0).as<float>()[0], -8);
  EXPECT_EQ(context.Output(0).as<float>()[1], 14);
}

TEST(While, SwappedVariablesKeepTheirValues) {
  // Three iterations of (i, c, x) -> (i + 1, x, c): values change places through the two contexts
  // of the body.
  std::string text = Replaced(
      kLoop, "ret { key: \"c_same\" value: \"c\" } ret { key: \"x_next\" value: \"sub:z:0\" }",
      "ret { key: \"c_same\" value: \"x\" } ret { key: \"x_next\" value: \"c\" }");
  const auto model = Load(text, {"loop:2", "loop:3"});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = (*model)->Find("")->default_variant().Bind({Shape({1, 2})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 1).ok());
  const float x[2] = {5, 6};
  context.BindInput(0, x);
  const absl::Status status = context.Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(context.Output(0).shape, Shape({1, 2}));
  EXPECT_EQ(context.Output(0).as<float>()[1], 6);
  EXPECT_EQ(context.Output(1).shape, Shape());
  EXPECT_EQ(context.Output(1).as<float>()[0], 2);
}

// y = x, once every element of x is above zero.
constexpr char kAssert[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } } } } }
  node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 } } } }
  node { name: "axes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } } }
  node { name: "text" op: "Const" attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "x must be positive" } } } }
  node { name: "above" op: "Greater" input: "x" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "all" op: "All" input: "above" input: "axes" }
  node { name: "check" op: "Assert" input: "all" input: "text" input: "x" attr { key: "summarize" value { i: 2 } } }
  node { name: "y" op: "Identity" input: "x" input: "^check" attr { key: "T" value { type: DT_FLOAT } } })";

TEST(Assert, FailsTheRunWithItsMessage) {
  const auto model = Load(kAssert);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = (*model)->Find("")->default_variant().Bind({Shape({3})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExecContext context;
  ASSERT_TRUE(context.Prepare(*plan, 3).ok());
  const float good[3] = {1, 2, 3}, bad[3] = {1, -2, 3};
  context.BindInput(0, good);
  EXPECT_TRUE(context.Run().ok());
  EXPECT_EQ(context.Output(0).as<float>()[2], 3);
  context.BindInput(0, bad);
  EXPECT_THAT(
      std::string(context.Run().message()),
      AllOf(HasSubstr("node 'check'"), HasSubstr("x must be positive"), HasSubstr("[1 -2...]")));
}

TEST(Functions, HostileLibrariesAreRefused) {
  const auto error = [](const std::string& text) {
    return std::string(Load(text).status().message());
  };
  EXPECT_THAT(
      error(Replaced(
          Replaced(kLoop, "op: \"Relu\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } }",
                   "op: \"PartitionedCall\" input: \"x\" attr { key: \"f\" value { func { name: "
                   "\"step\" } } } attr { key: \"Tout\" value { list { type: DT_FLOAT } } }"),
          "relu:activations:0", "relu:output:0")),
      HasSubstr("'step' calls itself"));
  EXPECT_THAT(error(Replaced(kLoop, "func { name: \"double\" }", "func { name: \"absent\" }")),
              HasSubstr("no function 'absent'"));
  EXPECT_THAT(error(Replaced(kLoop, "input: \"zero\" input: \"n\"", "input: \"zero\"")),
              HasSubstr("passes 3 values"));
  EXPECT_THAT(error(Replaced(kLoop, "value: \"sub:z:0\"", "value: \"gone:z:0\"")),
              HasSubstr("gone"));
  EXPECT_THAT(error(Replaced(kLoop, "value: \"less:z:0\"", "value: \"i\"")),
              testing::Not(HasSubstr("crash")));
}

}  // namespace
}  // namespace floe
