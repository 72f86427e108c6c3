// Graphs that would take all memory or never end: errors within the limits that were set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "model/import/import.h"
#include "runtime/exec_context.h"
#include "runtime/model.h"

namespace floe {
namespace {

using testing::HasSubstr;

constexpr char kFloatAttr[] = R"(attr { key: "T" value { type: DT_FLOAT } })";

std::string Function(const std::string& name, const std::string& nodes, const std::string& result,
                     const std::string& type = "DT_FLOAT") {
  return absl::StrCat("function { signature { name: '", name,
                      "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'r' type: ",
                      type, " } } ", nodes, " ret { key: 'r' value: '", result, "' } }");
}

// x is fed to `loop`, which turns for ever, and each iteration calls `body`.
std::string EndlessLoop(const std::string& body, const std::string& result) {
  return absl::StrCat(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "loop" op: "While" input: "x" attr { key: "cond" value { func { name: "ever" } } }
           attr { key: "body" value { func { name: "step" } } } }
    node { name: "y" op: "Identity" input: "loop" )",
                      kFloatAttr, "} library {",
                      Function("ever", R"(
    node_def { name: "true" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
               attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape {} bool_val: true } } } })",
                               "true:output:0", "DT_BOOL"),
                      Function("step", body, result), "}");
}

std::string NegLoop() {
  return EndlessLoop(absl::StrCat("node_def { name: 'n' op: 'Neg' input: 'x' ", kFloatAttr, "}"),
                     "n:y:0");
}

absl::StatusOr<std::shared_ptr<const Model>> LoadText(const std::string& text,
                                                      const ResourceLimits& limits = {}) {
  ImportOptions import;
  import.limits = limits;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportBytes(text, import));
  CompileOptions compile;
  compile.limits = limits;
  return Model::Create({{}, std::move(imported.graph), std::move(imported.signatures)}, compile);
}

absl::Status RunOn(const Model& model, ExecContext& context, int64_t elements) {
  FLOE_ASSIGN_OR_RETURN(const auto plan,
                        model.Find("")->default_variant().Bind({Shape({elements})}));
  FLOE_RETURN_IF_ERROR(context.Prepare(plan, elements));
  const std::vector<float> x(elements, 1.f);
  context.BindInput(0, x.data());
  return context.Run();
}

TEST(Limits, AnEndlessLoopRunsOutOfRounds) {
  const auto model = LoadText(NegLoop());
  ASSERT_TRUE(model.ok()) << model.status();
  ExecContext context;
  context.budget().SetLimits({.max_loop_iterations = 50});
  for (int repeat = 0; repeat < 2; ++repeat) {
    const absl::Status status = RunOn(**model, context, 4);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("more than 50 iterations"));
  }
}

TEST(Limits, AnEndlessLoopEndsAtTheDeadlineOrWhenCancelled) {
  const auto model = LoadText(NegLoop());
  ASSERT_TRUE(model.ok()) << model.status();
  class EachLookTakesASecond : public Clock {
   public:
    TimePoint Now() const override { return now_ += std::chrono::seconds(1); }
    mutable TimePoint now_{};
  } clock;
  ExecContext context;
  context.budget().SetDeadline(TimePoint(std::chrono::seconds(30)), &clock);
  EXPECT_EQ(RunOn(**model, context, 4).code(), absl::StatusCode::kDeadlineExceeded);
  CancelToken cancel;
  cancel.Cancel();
  context.budget().SetCancel(&cancel);
  EXPECT_EQ(RunOn(**model, context, 4).code(), absl::StatusCode::kCancelled);
}

TEST(Limits, AValueThatDoublesEachRoundStopsAtTheMemoryLimit) {
  const auto model = LoadText(EndlessLoop(absl::StrCat(R"(
      node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
                 attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
      node_def { name: "twice" op: "ConcatV2" input: "x" input: "x" input: "axis:output:0"
                 attr { key: "N" value { i: 2 } } )",
                                                       kFloatAttr, "}"),
                                          "twice:output:0"));
  ASSERT_TRUE(model.ok()) << model.status();
  ExecContext context;
  context.budget().SetLimits({.max_bytes = 1 << 20, .max_loop_iterations = 1000});
  const absl::Status status = RunOn(**model, context, 4);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1048576"));
  EXPECT_LE(context.budget().bytes_held(), 1 << 20);
}

// Feeds one element and gives the error of the run.
absl::Status RunOnOne(const Model& model, const ResourceLimits& limits, const void* value) {
  ExecContext context;
  context.budget().SetLimits(limits);
  FLOE_ASSIGN_OR_RETURN(const auto plan, model.Find("")->default_variant().Bind({Shape()}));
  FLOE_RETURN_IF_ERROR(context.Prepare(plan, 1));
  context.BindInput(0, value);
  return context.Run();
}

TEST(Limits, StringsThatDoubleEachRoundStopAtTheMemoryLimit) {
  std::string text = EndlessLoop(
      "node_def { name: 'j' op: 'StringJoin' input: 'x' input: 'x' attr { key: 'N' value { i: 2 } "
      "} }",
      "j:output:0");
  for (size_t at; (at = text.find("DT_FLOAT")) != std::string::npos;)
    text.replace(at, 8, "DT_STRING");
  const auto model = LoadText(text);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string value = "abc";
  const absl::Status status =
      RunOnOne(**model, {.max_value_bytes = 1 << 16, .max_loop_iterations = 40}, &value);
  EXPECT_THAT(std::string(status.message()), HasSubstr("65536 for one value"));
}

TEST(Limits, ListsMayNotReserveMoreThanTheLimit) {
  const auto model = LoadText(R"(
      versions { producer: 1000 }
      node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "shape" value { shape {} } } }
      node { name: "s" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
             attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: -1 } } } }
      node { name: "list" op: "TensorListReserve" input: "s" input: "n" attr { key: "element_dtype" value { type: DT_FLOAT } } }
      node { name: "y" op: "TensorListLength" input: "list" })");
  ASSERT_TRUE(model.ok()) << model.status();
  const int32_t elements = 1 << 20;
  EXPECT_EQ(RunOnOne(**model, {.max_bytes = 1 << 20}, &elements).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RunOnOne(**model, {}, &elements).ok());
}

// f0 negates; each f(k) reaches f(k - 1) twice, by `twice`.
std::string Bomb(int levels, const std::string& twice) {
  std::string text = absl::StrCat(
      R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
         node { name: "y" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "f)",
      levels, "\" } } } } library {",
      Function("f0", absl::StrCat("node_def { name: 'n' op: 'Neg' input: 'x' ", kFloatAttr, "}"),
               "n:y:0"));
  for (int k = 1; k <= levels; ++k) {
    std::string nodes = twice;
    for (size_t at; (at = nodes.find("INNER")) != std::string::npos;)
      nodes.replace(at, 5, absl::StrCat("f", k - 1));
    absl::StrAppend(&text, Function(absl::StrCat("f", k), nodes, "b:output:0"));
  }
  return text + "}";
}

TEST(Limits, CallsThatMultiplyAreRefusedBeforeTheyTakeMemory) {
  const std::string text = Bomb(30, R"(
    node_def { name: "a" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "INNER" } } } }
    node_def { name: "b" op: "PartitionedCall" input: "a:output:0" attr { key: "f" value { func { name: "INNER" } } } })");
  const auto model = LoadText(text, {.max_visits = 100'000});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted) << model.status();
}

TEST(Limits, BranchesThatMultiplyAreRefused) {
  const std::string text = Bomb(30, R"(
    node_def { name: "p" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
    node_def { name: "b" op: "If" input: "p:output:0" input: "x"
               attr { key: "then_branch" value { func { name: "INNER" } } }
               attr { key: "else_branch" value { func { name: "INNER" } } } })");
  const auto model = LoadText(text, {.max_visits = 20'000});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("20000 nodes"));
}

TEST(Limits, AFewBytesMayNotStandForManyConstants) {
  const auto model =
      LoadText(R"(node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000 } dim { size: 1000 } } float_val: 1 } } } })",
               {.max_value_bytes = 1 << 20});
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("4000000 bytes"));
}

TEST(Limits, ShapesPastMemoryAreErrorsWhenTheModelIsLoaded) {
  const auto model = LoadText(absl::StrCat(R"(
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape { dim { size: 4294967296 } dim { size: 4294967296 } } } } }
      node { name: "y" op: "Neg" input: "x" )",
                                           kFloatAttr, "}"));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("'x'"));
}

}  // namespace
}  // namespace floe
