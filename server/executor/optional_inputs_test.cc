// Requests that feed some of a model's optional inputs: the others are at their defaults, whatever
// the requests before and beside fed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/executor/plan_executor.h"
#include "server/executor/test_models_for_test.h"
#include "server/scheduling/scheduler.h"

namespace floe::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Input = FloatCall::Input;

constexpr float kSecret = 31337.5f;

std::string Const(const std::string& name, const std::string& dims, float value) {
  return absl::StrCat(R"(node { name: ")", name,
                      R"(" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { )",
                      dims, " } float_val: ", value, " } } } }\n");
}

std::string Default(const std::string& name, const std::string& from, const std::string& dims) {
  return absl::StrCat(R"(node { name: ")", name, R"(" op: "PlaceholderWithDefault" input: ")", from,
                      R"(" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { )",
                      dims, " } } } }\n");
}

// y = a + b of the given dims, with defaults 1 and 20.
std::string SumGraph(const std::string& dims, const std::string& default_dims) {
  return Const("one", default_dims, 1) + Const("twenty", default_dims, 20) +
         Default("a", "one", dims) + Default("b", "twenty", dims) +
         R"(node { name: "y" op: "AddV2" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } })";
}

// One slot, stepped by hand, in memory of this filling.
struct ServedOptional {
  ServedOptional(const std::string& graph, MemoryFill fill, const ImportOptions& import = {})
      : model(CompileText(graph, {}, "", import)) {
    auto owned =
        std::make_unique<PlanExecutor>(1, 1, PlanExecutor::Options{.max_rows = 8, .fill = fill});
    scheduler = std::make_unique<Scheduler>(
        std::move(owned),
        Scheduler::Options{.limits = {.max_rows = 8}, .threads = 0, .clock = &clock});
  }
  // No values: the input is not fed.
  void Submit(FloatCall* call) {
    const auto asked = call->Ask(model);
    for (size_t i = 0; i < call->inputs.size(); ++i)
      if (call->inputs[i].values.empty()) asked->inputs[i] = TensorView();
    scheduler->Submit(call->MakeRequest(asked));
  }
  int Drain() {
    int runs = 0;
    while (scheduler->Step()) ++runs;
    return runs;
  }
  std::vector<float> Ask(std::vector<Input> inputs) {
    FloatCall call(std::move(inputs));
    Submit(&call);
    Drain();
    EXPECT_EQ(call.status, absl::OkStatus());
    return call.result;
  }
  FakeClock clock;
  ModelHandle model;
  std::unique_ptr<Scheduler> scheduler;
};

class OptionalInputs : public testing::TestWithParam<MemoryFill> {};
INSTANTIATE_TEST_SUITE_P(Filled, OptionalInputs,
                         testing::Values(MemoryFill::kNone, MemoryFill::kOnes,
                                         MemoryFill::kStripes));

TEST_P(OptionalInputs, UnfedOnesAreTheirDefaultsInTurns) {
  struct Case {
    std::string dims, default_dims;
    Shape shape;
  };
  for (const Case& c :
       {Case{"", "", Shape()}, Case{"dim { size: 1 }", "dim { size: 1 }", Shape({1})},
        Case{"dim { size: -1 }", "dim { size: 1 }", Shape({1})}}) {
    SCOPED_TRACE(c.dims);
    ServedOptional s(SumGraph(c.dims, c.default_dims), GetParam());
    const Input unfed;
    const auto fed = [&](float value) { return Input{c.shape, {value}}; };
    for (int round = 0; round < 3; ++round) {
      EXPECT_THAT(s.Ask({fed(0), fed(kSecret)}), ElementsAre(kSecret));
      EXPECT_THAT(s.Ask({fed(0), unfed}), ElementsAre(20));
      EXPECT_THAT(s.Ask({unfed, fed(kSecret)}), ElementsAre(kSecret + 1));
      EXPECT_THAT(s.Ask({unfed, unfed}), ElementsAre(21));
    }
  }
}

TEST_P(OptionalInputs, CallersOfDisjointSubsetsShareABatch) {
  ServedOptional s(SumGraph("dim { size: -1 }", "dim { size: 1 }"), GetParam());
  FloatCall a({{Shape({1}), {5}}, {}}), b({{}, {Shape({1}), {kSecret}}}),
      both({{Shape({2}), {2, 3}}, {Shape({2}), {kSecret, 4}}});
  for (FloatCall* call : {&both, &a, &b}) s.Submit(call);
  EXPECT_EQ(s.Drain(), 1);
  EXPECT_THAT(a.result, ElementsAre(25));
  EXPECT_THAT(b.result, ElementsAre(kSecret + 1));
  EXPECT_THAT(both.result, ElementsAre(kSecret + 2, 7));
}

TEST_P(OptionalInputs, ADefaultOfOneRowIsBroadcastAsTheGraphDoes) {
  ServedOptional s(SumGraph("dim { size: -1 }", "dim { size: 1 }"), GetParam());
  EXPECT_THAT(s.Ask({{Shape({3}), {1, 2, 3}}, {}}), ElementsAre(21, 22, 23));
}

// y = b, which is 10 x unless it is fed.
std::string ComputedGraph() {
  const std::string rows = "dim { size: -1 }";
  return absl::StrCat(
      R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { )",
      rows, " } } } }\n", Const("ten", "", 10),
      R"(node { name: "x10" op: "Mul" input: "x" input: "ten" attr { key: "T" value { type: DT_FLOAT } } })",
      Default("b", "x10", rows),
      R"(node { name: "y" op: "Identity" input: "b" attr { key: "T" value { type: DT_FLOAT } } })");
}

TEST_P(OptionalInputs, AComputedDefaultIsComputedForEveryRequest) {
  ServedOptional s(ComputedGraph(), GetParam());
  ASSERT_EQ(s.model->Find("")->def().inputs.size(), 1u);
  EXPECT_THAT(s.Ask({{Shape({2}), {1, kSecret}}}), ElementsAre(10, 10 * kSecret));
  FloatCall one({{Shape({1}), {3}}}), other({{Shape({2}), {4, 5}}});
  for (FloatCall* call : {&one, &other}) s.Submit(call);
  EXPECT_EQ(s.Drain(), 1);
  EXPECT_THAT(one.result, ElementsAre(30));
  EXPECT_THAT(other.result, ElementsAre(40, 50));
}

TEST_P(OptionalInputs, AComputedDefaultThatTheSignatureNamesMustBeFed) {
  ImportOptions named;
  named.input_aliases = {{"b", "b"}};
  ServedOptional s(ComputedGraph(), GetParam(), named);
  EXPECT_THAT(s.Ask({{Shape({2}), {1, kSecret}}}), ElementsAre(1, kSecret));
  FloatCall unfed(std::vector<Input>(1));
  s.Submit(&unfed);
  EXPECT_EQ(unfed.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unfed.status.message()), HasSubstr("'b' is missing"));
}

TEST_P(OptionalInputs, StringsOfOthersAreNotRead) {
  constexpr char kJoin[] = R"(
node { name: "da" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "A" } } } }
node { name: "db" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "B" } } } }
node { name: "a" op: "PlaceholderWithDefault" input: "da" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { } } } }
node { name: "b" op: "PlaceholderWithDefault" input: "db" attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { } } } }
node { name: "y" op: "StringJoin" input: "a" input: "b" attr { key: "N" value { i: 2 } } }
)";
  ServedOptional s(kJoin, GetParam());
  const ModelHandle numbers = CompileText(SumGraph("", ""));
  const auto ask = [&](const std::string* a, const std::string* b) {
    std::string answer;
    const auto asked = std::make_shared<Inference>();
    asked->model = s.model;
    asked->signature = s.model->Find("");
    for (const std::string* text : {a, b})
      asked->inputs.push_back(
          text == nullptr ? TensorView()
                          : TensorView{DType::kString, Shape(), const_cast<std::string*>(text)});
    Request request{.asked = asked};
    request.complete = [&answer](const absl::StatusOr<Outputs>& outputs, const Timings&) {
      answer =
          outputs.ok() ? *(*outputs)[0].as<std::string>() : std::string(outputs.status().message());
    };
    s.scheduler->Submit(std::move(request));
    s.Drain();
    return answer;
  };
  const std::string x = "x", secret = "secret";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(ask(&x, &secret), "xsecret");
    EXPECT_EQ(ask(&x, nullptr), "xB");
    FloatCall other({{Shape(), {kSecret}}, {Shape(), {kSecret}}});  // of another model, by the slot
    s.scheduler->Submit(other.MakeRequest(numbers));
    s.Drain();
    EXPECT_EQ(ask(nullptr, &secret), "Asecret");
    EXPECT_EQ(ask(nullptr, nullptr), "AB");
  }
}

}  // namespace
}  // namespace floe::server
