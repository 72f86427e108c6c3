// SavedModels that TensorFlow wrote, the seeds of a fuzzer, with the checkpoint they share.
#include "model/import/savedmodel/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "model/op_def.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = FLOE_SOURCE_DIR "/tests/fuzz/saved_model";

std::string Seed(const std::string& name) {
  std::ifstream in(FLOE_SOURCE_DIR "/tests/fuzz/corpus/saved_model/" + name + ".pb",
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> Names(const ImportedModel& model) {
  std::vector<std::string> names;
  for (const SignatureDef& signature : model.signatures) names.push_back(signature.name);
  return names;
}

const Node* Find(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes()) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

TEST(SavedModel, HasItsSignaturesAndValues) {
  const auto model = ImportSavedModelBytes(Seed("v1"), kFolder, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->format, "SavedModel (binary)");
  EXPECT_EQ(model->asset_directory, kFolder);
  EXPECT_THAT(Names(*model), ElementsAre("inner", "serving_default"));
  EXPECT_EQ(model->signatures[0].inputs[0].key, "x");
  EXPECT_EQ(model->signatures[0].inputs[0].tensor_name, "inner");
  EXPECT_EQ(model->signatures[0].method, "tensorflow/serving/predict");
  EXPECT_EQ(model->signatures[1].inputs[0].tensor_name, "x");
  EXPECT_EQ(model->signatures[1].inputs[0].type,
            (TensorType{DType::kFloat32, {Dim::Unknown(), 3}}));
  const Node* const b = Find(model->graph, "b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->op->name, "Const");
  EXPECT_EQ(b->attrs.Find<Tensor>("value")->as<float>()[1], -1);
}

TEST(SavedModel, LeavesNothingOfVariablesInFunctions) {
  for (const char* seed : {"dense", "flow", "lookup"}) {
    const auto model = ImportSavedModelBytes(Seed(seed), kFolder, {});
    ASSERT_TRUE(model.ok()) << seed << ": " << model.status();
    EXPECT_THAT(Names(*model), ElementsAre(seed));
    for (const Node& node : model->graph.nodes())
      EXPECT_NE(node.op->name, "Unsupported") << node.name;
  }
}

TEST(SavedModel, LeavesOutWhatAssigns) {
  const auto model = ImportSavedModelBytes(Seed("assign"), kFolder, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Names(*model), ElementsAre("dense"));
  ASSERT_EQ(model->left_out.count("assign"), 1u);
  EXPECT_THAT(std::string(model->left_out.at("assign").message()),
              HasSubstr("(AssignAddVariableOp) assigns to a variable"));
}

TEST(SavedModel, NeedsItsVariables) {
  const auto model = ImportSavedModelBytes(Seed("dense"), "/nowhere", {});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("variable '"), HasSubstr("/nowhere/variables/variables.index")));
}

TEST(SavedModel, IsChosenByTags) {
  ImportOptions options;
  options.tags = {"serve", "gpu"};
  const auto model = ImportSavedModelBytes(Seed("v1"), kFolder, options);
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("'gpu', 'serve'"), HasSubstr("it has: 'serve'")));
}

TEST(SavedModel, IsTheVersionsAndNotTheModelsDirectory) {
  const std::filesystem::path model = testing::TempDir() + "/of_versions";
  std::filesystem::create_directories(model / "2");
  std::ofstream(model / "2" / "saved_model.pb") << Seed("v1");
  const std::string error(ImportFile(model.string(), {}).status().message());
  EXPECT_THAT(error, AllOf(HasSubstr("it holds versions"), HasSubstr("of_versions/2")));
  std::filesystem::remove_all(model);
}

TEST(SavedModel, CanBeTakenForABareGraph) {
  ImportOptions options;
  options.input_aliases = {{"middle", "inner"}};
  options.output_aliases = {{"out", "w"}};
  const auto model = ImportSavedModelBytes(Seed("v1"), kFolder, options);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("'inner'"));
  options.input_aliases.clear();
  const auto weights = ImportSavedModelBytes(Seed("v1"), kFolder, options);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_THAT(Names(*weights), ElementsAre("serving_default"));
  options.output_aliases = {{"out", "ww"}};
  const auto missing = ImportSavedModelBytes(Seed("v1"), kFolder, options);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("nearest: 'w'"));
}

}  // namespace
}  // namespace floe
