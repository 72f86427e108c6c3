// What a graph is asked for: tensors fed inside it, parts that nothing needs, and what old files
// mean.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "model/import/import.h"
#include "model/import/signature.h"
#include "model/op_def.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace floe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> Keys(const std::vector<SignatureTensor>& tensors) {
  std::vector<std::string> keys;
  keys.reserve(tensors.size());
  for (const SignatureTensor& t : tensors) keys.push_back(t.key);
  return keys;
}

SignatureDef SignatureOf(const std::string& bytes, const ImportOptions& options = {}) {
  const auto model = ImportBytes(bytes, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->signatures[0] : SignatureDef();
}

std::string ErrorOf(const std::string& bytes, const ImportOptions& options = {}) {
  const auto model = ImportBytes(bytes, options);
  return model.ok() ? "no error" : std::string(model.status().message());
}

std::string Op(const std::string& name, const std::string& op, const std::string& inputs,
               const std::string& type = "DT_FLOAT") {
  return "node { name: '" + name + "' op: '" + op + "' " + inputs +
         " attr { key: 'T' value { type: " + type + " } } }\n";
}

// ---- producer versions ----

std::string Scalar(const std::string& versions) {
  return versions + R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } })" +
         Op("y", "Neg", "input: 'x'");
}

TEST(Versions, UpTo21AScalarPlaceholderIsOneOfUnknownShape) {
  for (const char* old : {"", "versions { producer: 9 }", "versions { producer: 21 }"})
    EXPECT_FALSE(SignatureOf(Scalar(old)).inputs.at(0).type.shape.rank_known()) << old;
  for (const char* later : {"versions { producer: 22 }", "versions { producer: 1882 }"})
    EXPECT_EQ(SignatureOf(Scalar(later)).inputs.at(0).type.shape, SymShape()) << later;
}

// ---- tensors inside the graph ----

// An iterator gives labels and images; reading them takes ops that floe does not have.
constexpr char kPipeline[] = R"(
  node { name: "iterator" op: "IteratorV2" attr { key: "shared_name" value { s: "" } } }
  node { name: "next" op: "IteratorGetNext" input: "iterator"
         attr { key: "output_types" value { list { type: DT_INT64 type: DT_FLOAT } } }
         attr { key: "output_shapes" value { list { shape { dim { size: -1 } } shape { dim { size: -1 } dim { size: 2 } } } } } }
  node { name: "labels" op: "Cast" input: "next" attr { key: "SrcT" value { type: DT_INT64 } } attr { key: "DstT" value { type: DT_FLOAT } } }
  node { name: "y" op: "Neg" input: "next:1" input: "^next" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "big" op: "Greater" input: "y" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "z" op: "LogicalNot" input: "big" })";

TEST(InnerFeeds, AnOutputOfANodeWithSeveral) {
  ImportOptions options;
  options.input_aliases = {{"images", "next:1"}};
  options.output_aliases = {{"y", "y"}};
  const auto model = ImportBytes(kPipeline, options);
  ASSERT_TRUE(model.ok()) << model.status();
  const SignatureDef& signature = model->signatures[0];
  ASSERT_THAT(Keys(signature.inputs), ElementsAre("images"));
  EXPECT_EQ(signature.inputs[0].type.dtype, DType::kFloat32);
  EXPECT_EQ(signature.inputs[0].type.shape.ToString(), "[?,2]");
  EXPECT_FALSE(signature.inputs[0].optional);
  for (const Node& node : model->graph.nodes()) {
    if (node.name != "y") continue;
    EXPECT_EQ(model->graph.node(node.inputs[0].node).op->name, "Input");
    EXPECT_THAT(node.control_inputs, SizeIs(0));
  }
}

TEST(InnerFeeds, WhatIteratorsAndQueuesGiveIsAnInputByItself) {
  EXPECT_THAT(Keys(SignatureOf(kPipeline).inputs), ElementsAre("next", "next:1"));
  ImportOptions options;
  options.fetches = {"y"};
  EXPECT_THAT(Keys(SignatureOf(kPipeline, options).inputs), ElementsAre("next:1"));
  options.feeds = {{"y"}};
  options.fetches = {"z"};
  EXPECT_THAT(Keys(SignatureOf(kPipeline, options).inputs), ElementsAre("y"));
}

TEST(InnerFeeds, TheTypeIsThatOfTheValue) {
  ImportOptions options;
  options.input_aliases = {{"in", "big"}};
  options.output_aliases = {{"z", "z"}};
  const SignatureDef signature = SignatureOf(kPipeline, options);
  ASSERT_THAT(Keys(signature.inputs), ElementsAre("in"));
  EXPECT_EQ(signature.inputs[0].type.dtype, DType::kBool);
  EXPECT_EQ(signature.inputs[0].tensor_name, "big");
}

TEST(InnerFeeds, ToolsNameThemAsTheirArrays) {
  ImportOptions options;
  options.fetches = {"y", "next:1", "labels"};
  options.feeds = {{"next__1"}, {"next"}, {"no such array"}};
  const SignatureDef signature = SignatureOf(kPipeline, options);
  EXPECT_THAT(Keys(signature.inputs), ElementsAre("next", "next__1"));
  EXPECT_EQ(signature.outputs[1].tensor_name, signature.inputs[1].tensor_name);
}

TEST(InnerFeeds, PlaceholdersAboveNeedNotBeFed) {
  ImportOptions options;
  options.fetches = {"y"};
  options.feeds = {{"a"}};
  const SignatureDef signature =
      SignatureOf(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } })" +
                      Op("a", "Neg", "input: 'x'") + Op("y", "Neg", "input: 'a'"),
                  options);
  ASSERT_THAT(Keys(signature.inputs), ElementsAre("x", "a"));
  EXPECT_TRUE(signature.inputs[0].optional);
  EXPECT_FALSE(signature.inputs[1].optional);
}

TEST(InnerFeeds, ATypeThatNothingTellsComesFromTheArrayOrIsAnError) {
  const std::string graph =
      "node { name: 'a' op: 'NoSuchOp' } node { name: 'y' op: 'Neg' input: 'a' }";
  ImportOptions options;
  options.fetches = {"y"};
  options.feeds = {{"a", DType::kInt32}};
  EXPECT_EQ(SignatureOf(graph, options).inputs.at(0).type.dtype, DType::kInt32);
  options.feeds.clear();
  options.input_aliases = {{"in", "a"}};
  EXPECT_THAT(ErrorOf(graph, options),
              AllOf(HasSubstr("input 'in'"), HasSubstr("'a' of NoSuchOp"), HasSubstr("type")));
}

TEST(InnerFeeds, ParsedExamplesHaveTheTypesOfTheirFeatures) {
  const std::string graph = R"(
    node { name: "p" op: "ParseExample" attr { key: "sparse_types" value { list { type: DT_STRING } } }
           attr { key: "Tdense" value { list { type: DT_FLOAT } } } }
    node { name: "y" op: "IdentityN" input: "p" input: "p:1" input: "p:2" input: "p:3"
           attr { key: "T" value { list { type: DT_INT64 type: DT_STRING type: DT_INT64 type: DT_FLOAT } } } })";
  ImportOptions options;
  options.fetches = {"y"};
  options.feeds = {{"p:0"}, {"p:1"}, {"p:2"}, {"p:3"}};
  std::map<std::string, DType> types;
  for (const SignatureTensor& input : SignatureOf(graph, options).inputs)
    types[input.key] = input.type.dtype;
  EXPECT_EQ(types["p:0"], DType::kInt64);
  EXPECT_EQ(types["p:1"], DType::kString);
  EXPECT_EQ(types["p:2"], DType::kInt64);
  EXPECT_EQ(types["p:3"], DType::kFloat32);
}

// f0 negates; each f(k) runs f(k - 1) in four branches.
#ifndef FLOE_SANITIZED  // takes half a minute there
TEST(InnerFeeds, TypesOfSharedBodiesAreLookedForWithinLimits) {
  const auto condition = [](const std::string& name, const std::string& input, int function) {
    const std::string branch = "value { func { name: 'f" + std::to_string(function) + "' } } }";
    return "name: '" + name + "' op: 'StatelessIf' input: 'p' input: '" + input +
           "' attr { key: 'then_branch' " + branch + " attr { key: 'else_branch' " + branch +
           " attr { key: 'Tout' value { list { type: DT_FLOAT } } }";
  };
  constexpr int kLevels = 28;
  std::string library;
  for (int k = 0; k <= kLevels; ++k) {
    const std::string constant =
        "node_def { name: 'p' op: 'Const' attr { key: 'dtype' value { type: DT_BOOL } } attr { "
        "key: "
        "'value' value { tensor { dtype: DT_BOOL tensor_shape {} bool_val: true } } } }";
    std::string nodes =
        "node_def { name: 'b' op: 'Neg' input: 'x' attr { key: 'T' value { type: "
        "DT_FLOAT } } }";
    if (k > 0) {
      nodes = constant;
      std::string inner =
          condition("a", "x", k - 1) + " } node_def { " + condition("b", "a:output:0", k - 1);
      for (size_t at; (at = inner.find("input: 'p'")) != std::string::npos;)
        inner.replace(at, 10, "input: \"p:output:0\"");
      nodes += " node_def { " + inner + " }";
    }
    library +=
        "function { signature { name: 'f" + std::to_string(k) +
        "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'r' type: DT_FLOAT } } " +
        nodes + " ret { key: 'r' value: '" + (k == 0 ? "b:y:0" : "b:output:0") + "' } }\n";
  }
  const std::string graph =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
      "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }\n"
      "node { " +
      condition("deep", "x", kLevels) + " }\n" + Op("y", "Neg", "input: 'deep'") + "library { " +
      library + "}";
  ImportOptions options;
  options.fetches = {"y"};
  options.feeds = {{"deep", DType::kFloat32}};
  EXPECT_THAT(Keys(SignatureOf(graph, options).inputs), testing::Contains("deep"));
}
#endif

// ---- what nothing needs ----

constexpr char kKept[] = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";

TEST(Unneeded, FetchesRefuseNothingElse) {
  ImportOptions options;
  options.fetches = {"y"};
  const std::vector<std::string> malformed = {
      Op("a", "Neg", "input: 'missing'"),
      Op("a", "Neg", "input: '^missing' input: 'y'"),
      Op("a", "Neg", ""),
      Op("a", "Neg", "input: 'b'") + Op("b", "Neg", "input: 'a'") + Op("c", "Neg", "input: 'b'"),
      Op("a", "Neg", "input: 'y:7'"),
      "node { name: 'a' op: 'Const' }",
      "node { name: 'a' op: 'PartitionedCall' attr { key: 'f' value { func { name: 'f' } } } }",
      Op("a", "Enter", "input: 'y'") + Op("b", "Neg", "input: 'a'"),
      Op("e", "Enter", "input: 'x'") + Op("m", "Merge", "input: 'e' input: 'n'") +
          Op("n", "NextIteration", "input: 'm'") + Op("a", "Exit", "input: 'm'"),
  };
  for (const std::string& part : malformed) {
    EXPECT_NE(ErrorOf(kKept + part), "no error") << part;
    EXPECT_EQ(ErrorOf(kKept + part, options), "no error") << part;
    ImportOptions needed;
    needed.fetches = {"a"};
    EXPECT_NE(ErrorOf(kKept + part, needed), "no error") << part;
  }
}

TEST(Unneeded, WhatLiesAboveAFedTensorRefusesNothing) {
  ImportOptions options;
  options.output_aliases = {{"out", "y"}};
  options.input_aliases = {{"in", "x"}};
  EXPECT_EQ(ErrorOf("node { name: 'x' op: 'Cast' input: 'missing' attr { key: 'DstT' value { type: "
                    "DT_FLOAT } } }" +
                        Op("y", "Neg", "input: 'x'"),
                    options),
            "no error");
}

TEST(Unneeded, HandlesThatFreezingLeftAreNoInputs) {
  const std::string handle =
      "node { name: 'table' op: 'Placeholder' attr { key: 'dtype' value { type: DT_RESOURCE } } }";
  EXPECT_THAT(Keys(SignatureOf(kKept + handle).inputs), ElementsAre("x"));
}

TEST(Unneeded, WhatTrainingLeavesBehindIsNoOutput) {
  const std::string left = R"(
    node { name: "tag" op: "Const" attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "t" } } } }
    node { name: "summary" op: "HistogramSummary" input: "tag" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "merged" op: "MergeSummary" input: "summary" attr { key: "N" value { i: 1 } } }
    node { name: "queue" op: "FIFOQueueV2" }
    node { name: "size" op: "QueueSizeV2" input: "queue" }
    node { name: "data" op: "TensorSliceDataset" input: "tag" }
    node { name: "start" op: "TruncatedNormal" input: "shape" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 2 } } } }
    node { name: "assign" op: "Assign" input: "variable" input: "start" }
    node { name: "variable" op: "VariableV2" })";
  EXPECT_THAT(Keys(SignatureOf(kKept + left).outputs), ElementsAre("y"));
}

TEST(Unneeded, LearningPhasesInScopesAreOptional) {
  const SignatureDef signature = SignatureOf(R"(
    node { name: "norm/keras_learning_phase" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } }
    node { name: "y" op: "LogicalNot" input: "norm/keras_learning_phase" })");
  ASSERT_THAT(signature.inputs, SizeIs(1));
  EXPECT_TRUE(signature.inputs[0].optional);
}

TEST(Unneeded, NotesOfTensorFlowToItselfAreNotRead) {
  EXPECT_EQ(
      ErrorOf("node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } "
              "} attr { key: '_note' value { type: 77 } } }" +
              Op("y", "Neg", "input: 'x'")),
      "no error");
}

// ---- computed defaults ----

// y = -b, where b is -x unless it is fed.
std::string ComputedDefault() {
  return R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } })" +
         Op("minus_x", "Neg", "input: 'x'") + R"(
    node { name: "b" op: "PlaceholderWithDefault" input: "minus_x" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: -1 } } } } })" +
         Op("y", "Neg", "input: 'b'");
}

TEST(ComputedDefaults, AreInputsWhereTheyAreNamedAndThenRequired) {
  EXPECT_THAT(Keys(SignatureOf(ComputedDefault()).inputs), ElementsAre("x"));
  ImportOptions configured;
  configured.input_aliases = {{"in", "b"}};
  ImportOptions of_tool;
  of_tool.fetches = {"y"};
  of_tool.feeds = {{"b"}};
  for (const ImportOptions& options : {configured, of_tool}) {
    const SignatureTensor b = SignatureOf(ComputedDefault(), options).inputs.back();
    EXPECT_EQ(b.tensor_name, "b");
    EXPECT_FALSE(b.optional);
    EXPECT_EQ(b.type.dtype, DType::kFloat32);
    EXPECT_EQ(b.type.shape.ToString(), "[?]");
  }
}

TEST(ComputedDefaults, AreRequiredWhereTheFilesSignatureNamesThem) {
  auto model = ImportBytes(ComputedDefault(), {});
  ASSERT_TRUE(model.ok()) << model.status();
  SignatureDef of_file;
  of_file.inputs = {{"in", "b:0", {DType::kFloat32, SymShape::UnknownRank()}}};
  of_file.outputs = {{.key = "out", .tensor_name = "y:0"}};
  const auto signature = CompleteSignature(&model->graph, of_file, {});
  ASSERT_TRUE(signature.ok()) << signature.status();
  ASSERT_THAT(Keys(signature->inputs), ElementsAre("in"));
  EXPECT_FALSE(signature->inputs[0].optional);
}

TEST(ComputedDefaults, GiveWayToTheConfigurations) {
  ImportOptions options;
  options.placeholder_defaults = {{"b", Tensor::Scalar(DType::kFloat32, 3.f)}};
  const SignatureDef signature = SignatureOf(ComputedDefault(), options);
  ASSERT_THAT(Keys(signature.inputs), ElementsAre("x", "b"));
  EXPECT_TRUE(signature.inputs[1].optional);
  EXPECT_EQ(*signature.inputs[1].default_value.as<float>(), 3.f);
}

// ---- other files, other names ----

TEST(OtherFormats, AreCalledByTheirNames) {
  tensorflow::SavedModel saved;
  saved.set_saved_model_schema_version(1);
  tensorflow::MetaGraphDef* const meta = saved.add_meta_graphs();
  meta->mutable_meta_info_def()->set_tensorflow_version("2.21.0");
  meta->mutable_meta_info_def()->add_tags("serve");
  meta->mutable_graph_def()->add_node()->set_name("x");
  const struct {
    std::string bytes, name;
  } cases[] = {
      {saved.SerializeAsString(), "a SavedModel"},
      {"saved_model_schema_version: 1\nmeta_graphs {\n}\n", "a SavedModel"},
      {meta->SerializeAsString(), "a MetaGraphDef"},
      {"meta_info_def {\n}\n", "a MetaGraphDef"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 9\n", "git lfs pull"},
      {"\x89HDF\r\n\x1a\n", "HDF5"},
      {std::string("\x1c\0\0\0TFL3", 8), "TensorFlow Lite"},
      {"<!DOCTYPE html>", "a web page"},
      {"\x08\x07\x12\x07pytorch", "an ONNX model"},
      {"PK\x03\x04 model/data.pkl", "PyTorch"},
      {"PK\x03\x04 a.txt", "a zip archive"},
      {"model_checkpoint_path: \"model.ckpt-100\"\n", "a checkpoint"},
      {"PK\x03\x04 x.npy", "NumPy"},
      {"\x93NUMPY\x01", "NumPy"},
      {std::string("\x80\x04\x95\0\0", 5), "a pickle"},
      {std::string("\x64\0\0\0\0\0\0\0{\"a\":", 13), "safetensors"},
      {"GGUF\x03", "GGUF"},
      {"ptrt1234", "TensorRT"},
      {"<?xml version=\"1.0\"?><net/>", "XML"},
      {"{\"class_name\": \"Functional\"}", "weights"},
      {"{\"modelTopology\": {}}", "TensorFlow.js"},
      {std::string(257, 'x') + "ustar", "a tar archive"},
  };
  for (const auto& c : cases)
    EXPECT_THAT(ErrorOf(c.bytes), AllOf(HasSubstr(c.name), HasSubstr("floe does not load")));
}

TEST(Names, AreEscapedAndCutInErrors) {
  tensorflow::GraphDef def;
  tensorflow::NodeDef* const node = def.add_node();
  node->set_name("a\n" + std::string(1 << 20, 'x'));
  node->set_op("Neg\t" + std::string(1 << 20, 'y'));
  node->add_input("in\r" + std::string(1 << 20, 'z'));
  const std::string missing = ErrorOf(def.SerializeAsString());
  EXPECT_THAT(missing, AllOf(HasSubstr("a\\n"), HasSubstr("Neg\\t"), HasSubstr("in\\r"),
                             SizeIs(testing::Lt(2000u)), Not(HasSubstr("\n"))));
  ImportOptions options;
  options.fetches = {std::string(1 << 20, 'o')};
  node->clear_input();
  EXPECT_THAT(ErrorOf(def.SerializeAsString(), options), SizeIs(testing::Lt(3000u)));
}

}  // namespace
}  // namespace floe
