// GraphDef import: forms, signatures, defaults and every kind of malformed file.
#include "model/import/import.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/memory_budget.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kDense[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } } }
  node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 1 } } float_val: 3 } } } }
  node { name: "y" op: "MatMul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "done" op: "NoOp" input: "^y" }
)";

std::string Binary(const std::string& text) {
  tensorflow::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  return def.SerializeAsString();
}

std::vector<std::string> KeysOf(const std::vector<SignatureTensor>& tensors) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const SignatureTensor& t : tensors) keys.push_back(t.key);
  return keys;
}

std::string ImportError(const std::string& bytes, const ImportOptions& options = {}) {
  const auto model = ImportBytes(bytes, options);
  return model.ok() ? "no error" : std::string(model.status().message());
}

TEST(Import, TextAndBinaryAreToldApartByContent) {
  const auto text = ImportBytes(kDense, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->format, "GraphDef (text)");
  const auto binary = ImportBytes(Binary(kDense), {});
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(binary->format, "GraphDef (binary)");
  EXPECT_EQ(DebugString(text->graph), DebugString(binary->graph));
}

TEST(Import, MakesASignatureFromPlaceholdersAndSinks) {
  const auto model = ImportBytes(kDense, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const SignatureDef& signature = model->signatures.at(0);
  EXPECT_EQ(signature.name, "serving_default");
  EXPECT_EQ(signature.method, "tensorflow/serving/predict");
  EXPECT_THAT(KeysOf(signature.inputs), ElementsAre("x"));
  EXPECT_THAT(KeysOf(signature.outputs), ElementsAre("y"));
  EXPECT_EQ(signature.inputs[0].type.shape.ToString(), "[?,2]");
}

// Those that lowering control flow leaves behind are no inputs at all.
TEST(Import, APlaceholderThatNoOutputReadsNeedNotBeFed) {
  const auto model = ImportBytes(std::string(kDense) + R"(
    node { name: "unused" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
    node { name: "cond/unused_control_flow_input_3" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } })",
                                 {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_THAT(KeysOf(model->signatures[0].inputs), ElementsAre("x", "unused"));
  EXPECT_FALSE(model->signatures[0].inputs[0].optional);
  EXPECT_TRUE(model->signatures[0].inputs[1].optional);
}

TEST(Import, WeightsThatNobodyReadsAreNoOutputs) {
  const auto model = ImportBytes(R"(
    node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
    node { name: "w/read" op: "Identity" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "Mul" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } })",
                                 {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(KeysOf(model->signatures[0].outputs), ElementsAre("y"));
}

TEST(Import, ConfigurationRenamesAndChooses) {
  ImportOptions options;
  options.input_aliases = {{"features", "x:0"}};
  options.output_aliases = {{"scores", "y"}};
  const auto model = ImportBytes(kDense, options);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(KeysOf(model->signatures[0].inputs), ElementsAre("features"));
  EXPECT_THAT(KeysOf(model->signatures[0].outputs), ElementsAre("scores"));
}

TEST(Import, WrongNamesAreAnsweredWithNearestAndSinks) {
  ImportOptions options;
  options.fetches = {"Y"};
  EXPECT_THAT(ImportError(kDense, options), AllOf(HasSubstr("no 'Y'"), HasSubstr("nearest: 'y'"),
                                                  HasSubstr("sinks of the graph: 'y'")));
  options = {};
  options.input_aliases = {{"in", "xx"}};
  EXPECT_THAT(ImportError(kDense, options),
              AllOf(HasSubstr("input 'in'"), HasSubstr("nearest: 'x'")));
  options = {};
  options.placeholder_defaults = {{"phase", Tensor::Scalar(DType::kBool, true)}};
  EXPECT_THAT(ImportError(kDense, options), HasSubstr("placeholder_defaults"));
  // Unlike a file that is missing, it does not pass.
  EXPECT_EQ(ImportBytes(kDense, options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Import, LastTypedValueRepeats) {
  const auto model = ImportBytes(kDense, {});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const Node& node : model->graph.nodes()) {
    if (node.name != "w") continue;
    const Tensor& w = *node.attrs.Find<Tensor>("value");
    EXPECT_EQ(w.as<float>()[0], 3.f);
    EXPECT_EQ(w.as<float>()[1], 3.f);
  }
}

TEST(Import, LearningPhaseAndPlaceholderWithDefaultAreOptional) {
  const auto model = ImportBytes(R"(
    node { name: "keras_learning_phase" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape {} } } }
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 } } } }
    node { name: "bias" op: "PlaceholderWithDefault" input: "zero" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
    node { name: "s" op: "Switch" input: "bias" input: "keras_learning_phase" }
    node { name: "out" op: "Merge" input: "s" input: "s:1" })",
                                 {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->signatures[0].inputs.size(), 2u);
  for (const SignatureTensor& input : model->signatures[0].inputs) {
    EXPECT_TRUE(input.optional) << input.key;
    EXPECT_TRUE(input.default_value.valid()) << input.key;
  }
}

// Whoever names the inputs need not name those that have a value.
TEST(Import, DefaultsFeedPlaceholdersThatTheChosenInputsLeaveOut) {
  const char* const graph = R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
    node { name: "scale" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
    node { name: "y" op: "Mul" input: "x" input: "scale" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "other" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } })";
  ImportOptions options;
  options.fetches = {"y"};
  options.input_aliases = {{"in", "x"}};
  const Tensor one = Tensor::Scalar(DType::kFloat32, 1.f);
  options.placeholder_defaults = {{"scale", one}, {"other", one}};
  const auto model = ImportBytes(graph, options);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto& inputs = model->signatures[0].inputs;
  ASSERT_THAT(KeysOf(inputs), ElementsAre("in", "scale"));
  EXPECT_FALSE(inputs[0].optional);
  EXPECT_TRUE(inputs[1].optional);
  options.input_aliases = {{"scale", "x"}};
  EXPECT_THAT(ImportError(graph, options), HasSubstr("signature.inputs: 'scale'"));
}

TEST(Import, AScalarDefaultFillsThePlaceholdersShape) {
  const char* const graph = R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } } }
    node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";
  ImportOptions options;
  options.placeholder_defaults = {{"x", Tensor::Scalar(DType::kFloat32, 2.f)}};
  const auto model = ImportBytes(graph, options);
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor& value = model->signatures[0].inputs[0].default_value;
  EXPECT_EQ(value.shape(), Shape({1, 3}));
  EXPECT_THAT(absl::MakeConstSpan(value.as<float>(), 3), ElementsAre(2, 2, 2));
}

TEST(Import, SinksOfSeveralOutputsGetNumbers) {
  const auto model = ImportBytes(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 4 } } } } }
    node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
    node { name: "halves" op: "Split" input: "axis" input: "x" attr { key: "num_split" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } })",
                                 {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(KeysOf(model->signatures[0].outputs), ElementsAre("halves", "halves:1"));
}

struct Malformed {
  const char* what;
  std::string graph;
  const char* error;
};

TEST(Import, MalformedGraphsNameNodeAndReason) {
  const std::string node = "node { name: \"a\" op: \"Identity\" input: ";
  const std::vector<Malformed> cases = {
      {"empty", "", "empty"},
      {"no nodes", "versions { producer: 21 }", "no nodes"},
      {"text cut off", "node { name: \"a\" op:", "line 1"},
      {"unknown field", "node { naame: \"a\" }", "naame"},
      {"missing input", node + "\"b\" }", "'b' names no node"},
      {"cycle", node + "\"b\" } node { name: \"b\" op: \"Identity\" input: \"a\" }",
       "cycle through 'a' <- 'b'"},
      {"self cycle", node + "\"a\" }", "cycle"},
      {"duplicate", "node { name: \"a\" op: \"NoOp\" } node { name: \"a\" op: \"NoOp\" }",
       "second node of this name"},
      {"no name", "node { op: \"NoOp\" }", "has no name"},
      {"arity", "node { name: \"a\" op: \"Identity\" }", "has 0 inputs"},
      {"output number", "node { name: \"b\" op: \"NoOp\" } " + node + "\"b:1\" }", "past the"},
      {"bad tensor name", "node { name: \"b\" op: \"NoOp\" } " + node + "\"b:x\" }",
       "not a tensor name"},
      {"const without value",
       "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } }",
       "no attribute 'value'"},
      {"const of another dtype",
       "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { "
       "key: \"value\" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }",
       "says dtype float32 but its value is int32"},
      {"content of the wrong size",
       "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { "
       "key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } "
       "tensor_content: \"abc\" } } } }",
       "needs 8 bytes, tensor_content has 3"},
      {"negative dim",
       "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { "
       "key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: -5 } } } } } }",
       "negative dimension"},
      {"shape that overflows",
       "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { "
       "key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } "
       "dim { size: 4294967296 } } } } } }",
       "too many elements"},
      {"bomb of one value",
       "node { name: \"a\" op: \"Const\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { "
       "key: \"value\" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 99999999999 } } "
       "float_val: 1 } } } }",
       "bytes"},
      {"unknown dtype",
       "node { name: \"a\" op: \"Placeholder\" attr { key: \"dtype\" value { type: 77 } } }",
       "dtype"},
  };
  for (const Malformed& c : cases) EXPECT_THAT(ImportError(c.graph), HasSubstr(c.error)) << c.what;
}

TEST(Import, EveryTruncationAndByteFlipIsAnErrorOrAGraph) {
  const std::string whole = Binary(kDense);
  for (size_t n = 0; n < whole.size(); ++n) ImportError(whole.substr(0, n));
  for (size_t n = 0; n < whole.size(); ++n) {
    for (int bit : {0, 3, 7}) {
      std::string flipped = whole;
      flipped[n] = static_cast<char>(flipped[n] ^ (1 << bit));
      ImportError(flipped);
    }
  }
  EXPECT_THAT(ImportError(whole.substr(0, whole.size() - 3)), HasSubstr("malformed or cut off"));
}

// while (i < 3) { i = i + 1; x = x * c }, as TensorFlow 1 writes it.
constexpr char kLoop[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } } } } }
  node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
  node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
  node { name: "i/Enter" op: "Enter" input: "zero" attr { key: "frame_name" value { s: "loop" } } }
  node { name: "x/Enter" op: "Enter" input: "x" attr { key: "frame_name" value { s: "loop" } } }
  node { name: "c/Enter" op: "Enter" input: "c" attr { key: "frame_name" value { s: "loop" } } attr { key: "is_constant" value { b: true } } }
  node { name: "i/Merge" op: "Merge" input: "i/Enter" input: "i/Next" attr { key: "N" value { i: 2 } } }
  node { name: "x/Merge" op: "Merge" input: "x/Enter" input: "x/Next" attr { key: "N" value { i: 2 } } }
  node { name: "three" op: "Const" input: "^i/Merge" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 3 } } } }
  node { name: "less" op: "Less" input: "i/Merge" input: "three" attr { key: "T" value { type: DT_INT32 } } }
  node { name: "cond" op: "LoopCond" input: "less" }
  node { name: "i/Switch" op: "Switch" input: "i/Merge" input: "cond" }
  node { name: "x/Switch" op: "Switch" input: "x/Merge" input: "cond" }
  node { name: "one" op: "Const" input: "^i/Switch" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
  node { name: "add" op: "AddV2" input: "i/Switch:1" input: "one" attr { key: "T" value { type: DT_INT32 } } }
  node { name: "mul" op: "Mul" input: "x/Switch:1" input: "c/Enter" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "i/Next" op: "NextIteration" input: "add" }
  node { name: "x/Next" op: "NextIteration" input: "mul" }
  node { name: "x/Exit" op: "Exit" input: "x/Switch" }
  node { name: "y" op: "Identity" input: "x/Exit" })";

TEST(Import, AVersionOneLoopBecomesAWhile) {
  const auto model = ImportBytes(kLoop, {});
  ASSERT_TRUE(model.ok()) << model.status();
  int loops = 0;
  for (const Node& node : model->graph.nodes()) {
    EXPECT_THAT(node.op->name, testing::AnyOf("Input", "Const", "Identity", "While"));
    if (node.op->name != "While") continue;
    ++loops;
    EXPECT_EQ(node.inputs.size(), 3u);
    EXPECT_EQ(node.subgraphs.size(), 2u);
  }
  EXPECT_EQ(loops, 1);
  EXPECT_THAT(KeysOf(model->signatures[0].outputs), ElementsAre("y"));
}

TEST(Import, WhatALoopComputesForNobodyIsLeftOut) {
  const auto model = ImportBytes(std::string(kLoop) + R"(
  node { name: "unused" op: "Neg" input: "mul" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "unused/too" op: "Neg" input: "unused" attr { key: "T" value { type: DT_FLOAT } } })",
                                 {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(KeysOf(model->signatures[0].outputs), ElementsAre("y"));
}

TEST(Import, LoopsWithoutAFormAreRefusedByName) {
  std::string text = kLoop;
  const std::string from = "input: \"x/Switch:1\" input: \"c/Enter\"";
  text.replace(text.find(from), from.size(), "input: \"x/Switch:1\" input: \"x\"");
  EXPECT_THAT(ImportError(text),
              AllOf(HasSubstr("'x'"), HasSubstr("frame 'loop'"), HasSubstr("without an Enter")));
  EXPECT_THAT(ImportError(R"(
    node { name: "enter" op: "Enter" input: "x" }
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "merge" op: "Merge" input: "enter" input: "next" }
    node { name: "next" op: "NextIteration" input: "merge" })"),
              AllOf(HasSubstr("while frame"), HasSubstr("LoopCond")));
}

TEST(Import, PlaceholdersInFunctionsAreRefused) {
  EXPECT_THAT(ImportError(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "f" } } } }
    library { function { signature { name: "f" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
      ret { key: "r" value: "p:output:0" } } })"),
              HasSubstr("function 'f': placeholder 'p' can be fed by nobody"));
}

TEST(Import, MissingFilesAreNotFound) {
  EXPECT_EQ(ImportFile("/nonexistent/frozen.pb", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ImportFile("/", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

std::string ConstantText(int64_t floats, const std::string& values) {
  return absl::StrCat(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: )",
                      floats, " } } ", values, R"( } } } }
    node { name: "y" op: "Add" input: "x" input: "c" attr { key: "T" value { type: DT_FLOAT } } })");
}

TEST(ImportMemory, ConstantsArePaidForAsLongAsTheyLive) {
  const MemoryBudget memory(int64_t{32} << 20);
  const MemoryScope scope(memory);
  const std::string content(4000, 'a');
  for (const std::string& values :
       {std::string("float_val: 1"), absl::StrCat("tensor_content: '", content, "'")}) {
    const auto model = ImportBytes(ConstantText(1000, values), {});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(memory.in_use(), 4000);
  }
  EXPECT_EQ(memory.in_use(), 0);
  // A few bytes that stand for 64 MiB.
  const auto refused = ImportBytes(ConstantText(16 << 20, "float_val: 1"), {});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(std::string(scope.Explain(refused.status()).message()),
              HasSubstr("it needs 64.0 MiB"));
  EXPECT_EQ(memory.in_use(), 0);
}

// Two bytes make a node of protobuf's.
TEST(ImportMemory, WhatAMessageUnfoldsToIsAskedForFirst) {
  const MemoryBudget memory(int64_t{64} << 20);
  const MemoryScope scope(memory);
  std::string nodes;
  for (int i = 0; i < 1'000'000; ++i) nodes += std::string("\n\0", 2);
  EXPECT_TRUE(absl::IsResourceExhausted(ImportBytes(nodes, {}).status()));
  // A group, which cannot be walked.
  EXPECT_TRUE(absl::IsResourceExhausted(ImportBytes(nodes + "\x0b\x0c", {}).status()));
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "node{}";
  EXPECT_TRUE(absl::IsResourceExhausted(ImportBytes(text, {}).status()));
  EXPECT_EQ(memory.in_use(), 0);
}

}  // namespace
}  // namespace floe
