// Requests that feed some of a model's optional inputs: the others are at their defaults, whatever
// the requests before and beside fed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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
  ServedOptional(const std::string& graph, MemoryFill fill) : model(CompileText(graph)) {
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

// The default follows what is fed: b = 10 x and c = 100 x unless they are fed.
TEST_P(OptionalInputs, ComputedDefaultsAreComputedForEveryRequest) {
  const std::string rows = "dim { size: -1 }";
  ServedOptional s(
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

std::string Node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& attrs = "") {
  std::string text = absl::StrCat("node { name: \"", name, "\" op: \"", op, "\"");
  for (const std::string& input : inputs) absl::StrAppend(&text, " input: \"", input, "\"");
  return absl::StrCat(text, " attr { key: \"T\" value { type: DT_FLOAT } } ", attrs, " }\n");
}

std::string Placeholder(const std::string& name, const std::string& dims) {
  return absl::StrCat("node { name: \"", name,
                      R"(" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { )",
                      dims, " } } } }\n");
}

// y = a + 2 b + 3 c + 4 d + 5 e + x. By default a = 10 x, b = 100 x, c = a + b, d = 7 and e = c x.
std::string FiveDefaults() {
  const std::string rows = "dim { size: -1 }";
  std::string text = Placeholder("x", rows);
  for (const int n : {2, 3, 4, 5, 7, 10, 100}) text += Const(absl::StrCat("n", n), "", n);
  text += Node("x10", "Mul", {"x", "n10"}) + Default("a", "x10", rows) +
          Node("x100", "Mul", {"x", "n100"}) + Default("b", "x100", rows) +
          Node("ab", "AddV2", {"a", "b"}) + Default("c", "ab", rows) +
          Node("minus7", "Neg", {"n7"}) + Node("seven", "Neg", {"minus7"}) +
          Default("d", "seven", "") + Node("cx", "Mul", {"c", "x"}) + Default("e", "cx", rows);
  text += Node("b2", "Mul", {"b", "n2"}) + Node("c3", "Mul", {"c", "n3"}) +
          Node("d4", "Mul", {"d", "n4"}) + Node("e5", "Mul", {"e", "n5"}) +
          Node("s1", "AddV2", {"a", "b2"}) + Node("s2", "AddV2", {"c3", "d4"}) +
          Node("s3", "AddV2", {"s1", "s2"}) + Node("s4", "AddV2", {"s3", "e5"}) +
          Node("y", "AddV2", {"s4", "x"});
  return text;
}

// A request that feeds some of the five, and what it must be answered.
struct Subset {
  Subset(unsigned fed, int rows, int salt) {
    std::vector<std::vector<float>> values(6);  // x, a to e
    for (int i = 0; i < 6; ++i) {
      const bool scalar = i == 4;
      if (i > 0 && (fed >> (i - 1) & 1) == 0) continue;
      for (int row = 0; row < (scalar ? 1 : rows); ++row)
        values[i].push_back(static_cast<float>((salt * 31 + row * 7 + i * 3) % 23 - 9));
    }
    for (int row = 0; row < rows; ++row) {
      const float x = values[0][row];
      const auto of = [&](int i, float otherwise) {
        return values[i].empty() ? otherwise : values[i][i == 4 ? 0 : row];
      };
      const float a = of(1, 10 * x), b = of(2, 100 * x), c = of(3, a + b), d = of(4, 7),
                  e = of(5, c * x);
      want.push_back(a + 2 * b + 3 * c + 4 * d + 5 * e + x);
    }
    for (int i = 0; i < 6; ++i)
      inputs.push_back(values[i].empty() ? Input()
                                         : Input{i == 4 ? Shape() : Shape({rows}), values[i]});
  }
  std::vector<Input> inputs;
  std::vector<float> want;
};

TEST_P(OptionalInputs, AnySubsetOfManyComputedOnesMayBeFedInTurns) {
  ServedOptional s(FiveDefaults(), GetParam());
  for (int turn = 0; turn < 100; ++turn) {
    const unsigned fed = turn < 32 ? turn : static_cast<unsigned>(turn * 2654435761u >> 7) % 32;
    SCOPED_TRACE(absl::StrCat("turn ", turn, ", fed ", fed));
    const Subset subset(fed, turn % 4 + 1, turn);
    EXPECT_EQ(s.Ask(subset.inputs), subset.want);
  }
}

TEST_P(OptionalInputs, CallersOfAnySubsetsOfManyShareABatch) {
  ServedOptional s(FiveDefaults(), GetParam());
  for (unsigned d = 0; d < 2; ++d) {  // d has no rows: those who feed it have a batch of their own
    for (unsigned first = 1; first < 16; first += 3) {
      std::vector<Subset> subsets;
      std::vector<FloatCall> calls;
      for (unsigned k = 0; k < 4; ++k) {
        const unsigned set = (first + k * 5) % 15 + 1;  // of a, b, c and e
        subsets.emplace_back((set & 7) | (set >> 3) << 4 | d << 3, static_cast<int>(k % 2 + 1),
                             d == 1 ? 5 : static_cast<int>(first + k));
        calls.emplace_back(subsets.back().inputs);
      }
      for (FloatCall& call : calls) s.Submit(&call);
      const int runs = s.Drain();
      // An input without rows that is still to be computed cannot be compared.
      EXPECT_EQ(runs, d == 1 ? 1 : 4);
      for (size_t k = 0; k < calls.size(); ++k) {
        EXPECT_EQ(calls[k].status, absl::OkStatus());
        EXPECT_EQ(calls[k].result, subsets[k].want) << first << ", " << k;
      }
    }
  }
}

// The default of w is what is positive of x: how much that is, only the run tells.
TEST_P(OptionalInputs, ComputedDefaultsMayHaveAShapeThatOnlyTheRunTells) {
  const std::string rows = "dim { size: -1 }";
  std::string text = Placeholder("x", rows) + Const("zero", "", 0);
  text += Node("positive", "Greater", {"x", "zero"}) + Node("where", "Where", {"positive"}) +
          Node("picked", "GatherNd", {"x", "where"},
               R"(attr { key: "Tparams" value { type: DT_FLOAT } }
                  attr { key: "Tindices" value { type: DT_INT64 } })") +
          Default("w", "picked", rows);
  for (const char* name : {"a", "b", "c"})
    text +=
        Node(absl::StrCat("n", name), "Neg", {"zero"}) + Default(name, absl::StrCat("n", name), "");
  text += Node("ab", "AddV2", {"a", "b"}) + Node("abc", "AddV2", {"ab", "c"}) +
          Node("y", "AddV2", {"w", "abc"});
  text = absl::StrReplaceAll(
      text, {{"op: \"Where\" input: \"positive\" attr { key: \"T\" value { type: DT_FLOAT } }",
              "op: \"Where\" input: \"positive\" attr { key: \"T\" value { type: DT_BOOL } }"}});
  ServedOptional s(text, GetParam());
  const Input one{Shape(), {1}}, unfed, x{Shape({4}), {3, -1, 5, 2}}, w{Shape({2}), {8, 9}};
  const int at = s.model->Find("")->FindInput("w");
  ASSERT_GE(at, 0);
  const auto ask = [&](const Input& of_w) {
    std::vector<Input> inputs(5, one);
    inputs[s.model->Find("")->FindInput("x")] = x;
    inputs[at] = of_w;
    inputs[s.model->Find("")->FindInput("b")] = unfed;
    return s.Ask(inputs);
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(ask(unfed), ElementsAre(5, 7, 4));
    EXPECT_THAT(ask(w), ElementsAre(10, 11));
  }
}

// What is drawn for a default and for the rest of the graph is one number; apart it would be two.
TEST_P(OptionalInputs, WhoSharesRandomNumbersFeedsAllOrNone) {
  std::string text =
      R"(node { name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
    attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } } } } }
    node { name: "r" op: "RandomUniform" input: "dims" attr { key: "T" value { type: DT_INT32 } }
    attr { key: "dtype" value { type: DT_FLOAT } } })"
      "\n";
  for (const char* name : {"a", "b", "c", "d"}) text += Default(name, "r", "");
  text += R"(node { name: "y" op: "AddN" input: "a" input: "b" input: "c" input: "d"
      attr { key: "N" value { i: 4 } } attr { key: "T" value { type: DT_FLOAT } } })";
  ServedOptional s(text, GetParam());
  const Input one{Shape(), {1}}, unfed;
  EXPECT_THAT(s.Ask({one, one, one, one}), ElementsAre(4));
  FloatCall some({one, one, unfed, unfed});
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
  ServedOptional s(kJoin, GetParam());
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
