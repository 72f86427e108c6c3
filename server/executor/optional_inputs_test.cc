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
struct Served {
  Served(const std::string& graph, MemoryFill fill) : model(CompileText(graph)) {
    auto owned =
        std::make_unique<PlanExecutor>(1, 1, PlanExecutor::Options{.max_rows = 8, .fill = fill});
    scheduler = std::make_unique<Scheduler>(
        std::move(owned),
        Scheduler::Options{.limits = {.max_rows = 8}, .threads = 0, .clock = &clock});
  }
  // No values: the input is not fed.
  void Submit(FloatCall* call) {
    auto request = call->MakeRequest(model);
    for (size_t i = 0; i < call->inputs.size(); ++i)
      if (call->inputs[i].values.empty()) request->inputs[i] = TensorView();
    scheduler->Submit(std::move(request));
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
    Served s(SumGraph(c.dims, c.default_dims), GetParam());
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
  Served s(SumGraph("dim { size: -1 }", "dim { size: 1 }"), GetParam());
  FloatCall a({{Shape({1}), {5}}, {}}), b({{}, {Shape({1}), {kSecret}}}),
      both({{Shape({2}), {2, 3}}, {Shape({2}), {kSecret, 4}}});
  for (FloatCall* call : {&both, &a, &b}) s.Submit(call);
  EXPECT_EQ(s.Drain(), 1);
  EXPECT_THAT(a.result, ElementsAre(25));
  EXPECT_THAT(b.result, ElementsAre(kSecret + 1));
  EXPECT_THAT(both.result, ElementsAre(kSecret + 2, 7));
}

TEST_P(OptionalInputs, ADefaultOfOneRowIsBroadcastAsTheGraphDoes) {
  Served s(SumGraph("dim { size: -1 }", "dim { size: 1 }"), GetParam());
  EXPECT_THAT(s.Ask({{Shape({3}), {1, 2, 3}}, {}}), ElementsAre(21, 22, 23));
}

// The default follows what is fed: b = 10 x and c = 100 x unless they are fed.
TEST_P(OptionalInputs, ComputedDefaultsAreComputedForEveryRequest) {
  const std::string rows = "dim { size: -1 }";
  Served s(
      absl::StrCat(
          R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { )",
          rows, " } } } }\n", Const("ten", "", 10), Const("hundred", "", 100), Const("zero", "", 0),
          R"(node { name: "x10" op: "Mul" input: "x" input: "ten" attr { key: "T" value { type: DT_FLOAT } } }
         node { name: "x100" op: "Mul" input: "x" input: "hundred" attr { key: "T" value { type: DT_FLOAT } } })",
          Default("b", "x10", rows), Default("c", "x100", rows), Default("d", "zero", ""),
          R"(node { name: "bc" op: "AddV2" input: "b" input: "c" attr { key: "T" value { type: DT_FLOAT } } }
         node { name: "y" op: "AddV2" input: "bc" input: "d" attr { key: "T" value { type: DT_FLOAT } } })"),
      GetParam());
  const Input x{Shape({2}), {1, 2}}, b{Shape({2}), {kSecret, kSecret}}, c{Shape({2}), {7, 8}},
      d{Shape(), {.5f}}, unfed;
  EXPECT_THAT(s.Ask({x, b, c, d}), ElementsAre(kSecret + 7.5f, kSecret + 8.5f));
  EXPECT_THAT(s.Ask({x, unfed, unfed, unfed}), ElementsAre(110, 220));
  EXPECT_THAT(s.Ask({x, b, unfed, unfed}), ElementsAre(kSecret + 100, kSecret + 200));
  EXPECT_THAT(s.Ask({x, unfed, c, unfed}), ElementsAre(17, 28));
  EXPECT_THAT(s.Ask({x, unfed, c, d}), ElementsAre(17.5f, 28.5f));
  EXPECT_THAT(s.Ask({x, unfed, unfed, d}), ElementsAre(110.5f, 220.5f));
}

TEST_P(OptionalInputs, OfManyComputedOnesAllAreFedOrNone) {
  std::string text =
      R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { } } } }
    node { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";
  for (const char* name : {"a", "b", "c", "d"}) text += Default(name, "n", "");
  text += R"(node { name: "y" op: "AddN" input: "a" input: "b" input: "c" input: "d"
      attr { key: "N" value { i: 4 } } attr { key: "T" value { type: DT_FLOAT } } })";
  Served s(text, GetParam());
  const Input one{Shape(), {1}}, unfed;
  EXPECT_THAT(s.Ask({one, unfed, unfed, unfed, unfed}), ElementsAre(-4));
  EXPECT_THAT(s.Ask({one, one, one, one, one}), ElementsAre(4));
  FloatCall some({one, one, unfed, unfed, unfed});
  s.Submit(&some);
  EXPECT_EQ(some.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(some.status.message()), HasSubstr("'a', 'b', 'c', 'd'"));
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
  Served s(kJoin, GetParam());
  const ModelHandle numbers = CompileText(SumGraph("", ""));
  const auto ask = [&](const std::string* a, const std::string* b) {
    std::string answer;
    auto request = std::make_unique<Request>();
    request->model = s.model;
    request->signature = s.model->Find("");
    for (const std::string* text : {a, b})
      request->inputs.push_back(
          text == nullptr ? TensorView()
                          : TensorView{DType::kString, Shape(), const_cast<std::string*>(text)});
    request->complete = [&answer](const absl::StatusOr<Outputs>& outputs, const Timings&) {
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
