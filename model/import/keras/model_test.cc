// Models from their configurations alone: structure, and errors that name layers.
#include "model/import/keras/model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/import/keras/variables.h"

namespace floe::keras {
namespace {

using ::testing::HasSubstr;

struct Built {
  absl::Status status;
  Graph graph;
  ModelEnds ends;
};

Built Build(const std::string& text, int version = 3) {
  const auto json = ParseJson(text);
  if (!json.ok()) return {json.status(), {}, {}};
  GraphBuilder b;
  ModelFile file{.version = version};
  file.asset = [](const std::string&) -> absl::StatusOr<std::string> {
    return absl::NotFoundError("none");
  };
  Built built;
  built.ends = BuildModel(b, file, LayerObject{&*json, {}});
  built.status = b.status();
  built.graph = std::move(b.graph());
  return built;
}

std::string Layer(const std::string& class_name, const std::string& options,
                  const std::string& module = "keras.layers") {
  return absl::StrCat(R"({"module": ")", module, R"(", "class_name": ")", class_name,
                      R"(", "config": {)", options, "}}");
}

// A Sequential of four numbers a row, with one layer.
std::string Row(const std::string& layer) {
  return absl::StrCat(R"({"class_name": "Sequential", "config": {"name": "m", "layers": [)",
                      Layer("InputLayer", R"("name": "x", "batch_shape": [null, 4])"), ",", layer,
                      "]}}");
}

TEST(Model, NamesItsInputsAndOutputs) {
  const std::string model = Row(Layer("Activation", R"("name": "a", "activation": "relu")"));
  const Built built = Build(model);
  ASSERT_TRUE(built.status.ok()) << built.status;
  ASSERT_EQ(built.ends.inputs.size(), 1);
  EXPECT_EQ(built.ends.inputs[0].first, "x");
  ASSERT_EQ(built.ends.outputs.size(), 1);
  EXPECT_EQ(built.ends.outputs[0].first, "output_0");
  EXPECT_EQ(Build(model, 2).ends.outputs[0].first, "a");
}

TEST(Model, RefusesCodeByName) {
  for (const std::string& layer :
       {Layer("Lambda", R"("name": "l")"), Layer("Twice", R"("name": "l")", "my.package"),
        Layer("Nonsense", R"("name": "l")"), Layer("TFSMLayer", R"("name": "l")")}) {
    const Built built = Build(Row(layer));
    EXPECT_EQ(built.status.code(), absl::StatusCode::kUnimplemented) << layer;
    EXPECT_THAT(built.status.message(), HasSubstr("layer 'l' ("));
    EXPECT_THAT(built.status.message(), HasSubstr("model.export()"));
  }
}

TEST(Model, RefusesWhatLayersCannotDo) {
  const std::pair<std::string, std::string> wrong[] = {
      {Layer("Dense", R"("name": "l", "units": 3)"), "variable 0"},
      {Layer("Activation", R"("name": "l", "activation": "loud")"), "activation 'loud'"},
      {Layer("Activation", R"("name": "l", "activation": 7)"), ""},
      {Layer("LSTM", R"("name": "l", "units": -3)"), "units is -3"},
      {Layer("Conv2D", R"("name": "l")"), "expected rank 4"},
      {Layer("Reshape", R"("name": "l", "target_shape": "wide")"), "'target_shape'"},
      {Layer("StringLookup", R"("name": "l")"), "vocabulary"},
      {Layer("RNN", R"("name": "l", "cell": {"class_name": "MyCell", "config": {}})"), "'MyCell'"}};
  for (const auto& [layer, message] : wrong) {
    const Built built = Build(Row(layer));
    if (message.empty()) continue;
    EXPECT_FALSE(built.status.ok()) << layer;
    EXPECT_THAT(built.status.message(), HasSubstr(message));
    EXPECT_THAT(built.status.message(), HasSubstr("layer 'l' ("));
  }
}

TEST(Model, RefusesSubclasses) {
  const Built built = Build(R"({"module": "mine", "class_name": "MyModel", "config": {}})");
  EXPECT_FALSE(built.status.ok());
  EXPECT_THAT(built.status.message(), HasSubstr("model.export()"));
}

std::string Node(const std::string& from, int node = 0, int tensor = 0) {
  return absl::StrCat(
      R"({"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": [")", from,
      "\", ", node, ", ", tensor, R"(]}}], "kwargs": {}})");
}

std::string Functional(const std::string& nodes_of_a, const std::string& nodes_of_b,
                       const std::string& output) {
  const std::string relu =
      R"(", "module": "keras.layers", "class_name": "ReLU", "config": {"name": ")";
  return absl::StrCat(
      R"({"class_name": "Functional", "config": {"name": "m", "layers": [
        {"name": "x", "class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, 4]}, "inbound_nodes": []},
        {"name": "a)",
      relu, R"(a"}, "inbound_nodes": [)", nodes_of_a, R"(]}, {"name": "b)", relu,
      R"(b"}, "inbound_nodes": [)", nodes_of_b,
      R"(]}], "input_layers": [["x", 0, 0]], "output_layers": )", output, "}}");
}

TEST(Model, CallsLayersInTheOrderOfTheirInputs) {
  // `a` comes first in the list and takes what `b` gives.
  const Built built = Build(Functional(Node("b"), Node("x"), R"([["a", 0, 0]])"));
  EXPECT_TRUE(built.status.ok()) << built.status;
}

TEST(Model, RefusesBrokenReferences) {
  const std::string out = R"([["b", 0, 0]])";
  const std::pair<std::string, std::string> wrong[] = {
      {Functional(Node("b"), Node("a"), out), "in a circle"},
      {Functional(Node("x"), Node("a", 7), out), "which there is not"},
      {Functional(Node("x"), Node("a", 0, 1), out), "which there is not"},
      {Functional(Node("x"), Node("a"), R"([["c", 0, 0]])"), "which there is not"},
      {Functional(Node("x"), Node("a"), "7"), "what the outputs are"}};
  for (const auto& [model, message] : wrong) {
    const Built built = Build(model);
    EXPECT_FALSE(built.status.ok()) << model;
    EXPECT_THAT(built.status.message(), HasSubstr(message));
  }
}

// A model of this name that calls the model or layer `inner` as `calls` say.
std::string Outer(const std::string& name, const std::string& inner_name, const std::string& inner,
                  const std::string& calls, const std::string& output) {
  return absl::StrCat(R"({"module": "keras", "class_name": "Functional", "name": ")", name,
                      R"(", "config": {"name": ")", name, R"(", "layers": [
        {"name": "x", "class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, 4]}, "inbound_nodes": []},)",
                      inner.substr(0, inner.rfind('}')), R"(, "inbound_nodes": [)", calls,
                      R"(]}], "input_layers": [["x", 0, 0]], "output_layers": [[")", inner_name,
                      "\", ", output, ", 0]]}}");
}

// Models of models, each of which calls the one inside of it as `calls` say.
std::string Nest(int depth, const std::string& calls, const std::string& output) {
  std::string model = Outer("m0", "r",
                            R"({"name": "r", "module": "keras.layers", "class_name": "ReLU",
                                "config": {"name": "r"}})",
                            Node("x"), "0");
  for (int k = 1; k <= depth; ++k) {
    const std::string inner = absl::StrCat("m", k - 1);
    model = Outer(absl::StrCat("m", k), inner, model,
                  absl::StrReplaceAll(calls, {{"INNER", inner}}), output);
  }
  return model;
}

TEST(Model, OutputsNumberTheCallsOfModelsFromOne) {
  const std::string calls = absl::StrCat(Node("x"), ",", Node("INNER"));
  EXPECT_TRUE(Build(Nest(1, calls, "1")).status.ok());
  EXPECT_TRUE(Build(Nest(1, calls, "2")).status.ok());
  EXPECT_GT(Build(Nest(1, calls, "2")).graph.size(), Build(Nest(1, calls, "1")).graph.size());
  EXPECT_THAT(Build(Nest(1, calls, "0")).status.message(), HasSubstr("which there is not"));
  EXPECT_THAT(Build(Nest(1, calls, "3")).status.message(), HasSubstr("which there is not"));
}

TEST(Model, ACallThatNoOutputNeedsCostsNothing) {
  const std::string calls = absl::StrCat(Node("x"), ",", Node("INNER"));
  const Built built = Build(Nest(30, calls, "1"));
  EXPECT_TRUE(built.status.ok()) << built.status;
  EXPECT_LT(built.graph.size(), 100);
}

TEST(Model, TheSameCallTwiceIsOne) {
  const std::string calls = absl::StrCat(Node("x"), ",", Node("x"));
  const Built built = Build(Nest(30, calls, "2"));
  EXPECT_TRUE(built.status.ok()) << built.status;
  EXPECT_LT(built.graph.size(), 100);
}

#ifndef FLOE_SANITIZED  // takes a minute there
TEST(Model, HasABoundOfNodes) {
  const std::string calls = absl::StrCat(Node("x"), ",", Node("INNER"));
  const Built built = Build(Nest(30, calls, "2"));
  EXPECT_EQ(built.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(built.status.message(), HasSubstr("layer 'm29' (Functional)"));
  EXPECT_THAT(built.status.message(), HasSubstr("called too often"));
}
#endif

TEST(Json, IsPaidForBeforeItIsMade) {
  std::string text = "{\"a\": [0";
  for (int k = 0; k < 100'000; ++k) text += ",{}";
  text += "]}";
  MemoryShare share;
  const MemoryBudget budget(int64_t{64} << 20);
  const MemoryScope scope(budget);
  ASSERT_TRUE(ParseJson(text, &share).ok());
  EXPECT_GT(share.bytes(), 5'000'000);
  EXPECT_EQ(budget.in_use(), share.bytes());
  const MemoryBudget small(int64_t{4} << 20);
  const MemoryScope inner(small);
  EXPECT_EQ(ParseJson(text).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(small.in_use(), 0);
}

TEST(Json, HasLimits) {
  EXPECT_FALSE(ParseJson("[1]").ok());
  EXPECT_FALSE(ParseJson("{").ok());
  const std::string deep(300, '[');
  EXPECT_THAT(
      ParseJson(absl::StrCat("{\"a\":", deep, std::string(300, ']'), "}")).status().message(),
      HasSubstr("deeper"));
  EXPECT_TRUE(ParseJson(R"({"a": "[[[[\"[["})").ok());
}

TEST(Json, HasNumbersThatAreNotFiniteAsPythonWritesThem) {
  const absl::StatusOr<Json> json =
      ParseJson(R"({"a": [NaN, Infinity, -Infinity, -1], "NaN": "say \"Infinity, NaN"})");
  ASSERT_TRUE(json.ok()) << json.status();
  const Json& a = Member(*json, "a");
  EXPECT_TRUE(std::isnan(a[0].get<double>()));
  EXPECT_EQ(a[1].get<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(a[2].get<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(a[3], -1);
  EXPECT_EQ(Text(*json, "NaN"), "say \"Infinity, NaN");
  EXPECT_FALSE(ParseJson(R"({"a": Inf})").ok());
}

TEST(Weights, PlacesAreInSnakeCase) {
  const std::pair<const char*, const char*> names[] = {
      {"Dense", "dense"},
      {"Conv2DTranspose", "conv2d_transpose"},
      {"LSTM", "lstm"},
      {"PReLU", "p_re_lu"},
      {"ReLU", "re_lu"},
      {"BatchNormalization", "batch_normalization"},
      {"LSTMCell", "lstm_cell"},
      {"GlobalAveragePooling2D", "global_average_pooling2d"},
      {"ConvLSTM2D", "conv_lstm2d"},
      {"GroupQueryAttention", "grouped_query_attention"},
      {"TFOpLambda", "tf_op_lambda"}};
  for (const auto& [name, snake] : names) EXPECT_EQ(SnakeCase(name), snake) << name;
}

}  // namespace
}  // namespace floe::keras
