#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/import/import.h"
#include "model/import/savedmodel/saved_model.h"
#include "runtime/model.h"
#include "runtime/passes/unsupported.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Message(const std::vector<UnsupportedNode>& nodes) {
  return std::string(UnsupportedNodes(nodes).message());
}

TEST(UnsupportedNodes, AreGroupedByOpAndBounded) {
  std::vector<UnsupportedNode> nodes = {{"first", "Foo"}, {"b", "Bar"}};
  for (int i = 0; i < 1000; ++i) nodes.push_back({"more", "Foo"});
  EXPECT_THAT(Message(nodes), AllOf(HasSubstr("needs 1002 nodes"), HasSubstr("'first' (Foo)"),
                                    HasSubstr("and 998 more of these"), HasSubstr("'b' (Bar)")));
  for (int i = 0; i < 1000; ++i) nodes.push_back({"x\n", "Op" + std::to_string(i)});
  EXPECT_THAT(Message(nodes), AllOf(HasSubstr("'x\\n' (Op0)"), HasSubstr("and 990 other ops"),
                                    testing::SizeIs(testing::Lt(2000u))));
}

TEST(UnsupportedNodes, SayWhyOpsAreRefusedOnceForEachReason) {
  const std::string text = Message({{"a", "PyFunc"}, {"b", "EagerPyFunc"}, {"c", "OwnOp"}});
  const std::string why = "it calls Python code";
  EXPECT_NE(text.find("; PyFunc: " + why), std::string::npos) << text;
  EXPECT_EQ(text.find(why), text.rfind(why)) << text;
  EXPECT_NE(Message({{"f", "SimpleMLInferenceOpWithHandle"}}).find("Decision Forests"),
            std::string::npos);
}

TEST(UnsupportedNodes, AGraphWithVariablesIsNotFrozen) {
  EXPECT_THAT(Message({{"a", "Assign"}, {"w", "VariableV2"}, {"r", "RestoreV2"}}),
              AllOf(HasSubstr("not frozen"), HasSubstr("'w' (VariableV2)"), HasSubstr("freeze it"),
                    Not(HasSubstr("RestoreV2"))));
}

std::string LoadError(const std::string& graph) {
  auto imported = ImportBytes(graph, {});
  if (!imported.ok()) return std::string(imported.status().message());
  return std::string(
      Model::Create({{}, imported->graph, imported->signatures}, {}).status().message());
}

TEST(UnsupportedNodes, AreListedFromAllBodies) {
  const auto branch = [](const std::string& name, const std::string& op) {
    return "function { signature { name: '" + name + R"(' input_arg { name: "v" type: DT_FLOAT }
        output_arg { name: "r" type: DT_FLOAT } } node_def { name: ")" +
           name + R"(/bad" op: ")" + op +
           R"(" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
        ret { key: "r" value: ")" +
           name + R"(/bad" } })";
  };
  const auto conditional = [](const std::string& name, const std::string& branches) {
    return "node { name: '" + name + R"(' op: "If" input: "pred" input: "x"
        attr { key: "then_branch" value { func { name: ")" +
           branches + R"(_then" } } } attr { key: "else_branch" value { func { name: ")" +
           branches + R"(_else" } } } })";
  };
  const std::string text =
      R"(node { name: "pred" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } }
                attr { key: "shape" value { shape {} } } }
         node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } })" +
      conditional("a", "first") + conditional("b", "second") + "library {" +
      branch("first_then", "NoSuchOp") + branch("first_else", "NorThis") +
      branch("second_then", "Relu") + branch("second_else", "Neither") + "}";
  EXPECT_THAT(
      LoadError(text),
      AllOf(HasSubstr("'first_then/bad' (NoSuchOp)"), HasSubstr("'first_else/bad' (NorThis)"),
            HasSubstr("'second_else/bad' (Neither)"), HasSubstr("3 nodes")));
}

TEST(CheckSupported, ASignatureWithAMalformedNodeIsLeftOut) {
  const auto signature = [](const std::string& name) {
    return "signature_def { key: '" + name + R"(' value { method_name: "m"
        inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } }
        outputs { key: "y" value { name: ")" +
           name + R"(:0" dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } } } })";
  };
  const std::string text = R"(saved_model_schema_version: 1 meta_graphs {
    meta_info_def { tags: "serve" } graph_def { versions { producer: 2000 }
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: -1 } } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
    node { name: "good" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "bad" op: "AddV2" input: "x" input: "one"
           attr { key: "T" value { type: DT_FLOAT } } } } )" +
                           signature("bad") + signature("good") + "}";
  auto imported = ImportSavedModelBytes(text, "/nowhere", {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto model =
      Model::Create({{}, std::move(imported->graph), std::move(imported->signatures)}, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_NE((*model)->Find("good"), nullptr);
  EXPECT_EQ((*model)->Find("bad"), nullptr);
  EXPECT_THAT(std::string((*model)->left_out().at("bad").message()),
              AllOf(HasSubstr("'one' (Const)"), HasSubstr("says dtype float32")));
}

// What freezing leaves in the place of a table: nobody can feed it.
TEST(HandlePlaceholders, AreALoadErrorThatNamesWhoReadsThem) {
  for (const char* type : {"RESOURCE", "VARIANT"}) {
    const std::string graph = std::string(R"(
      node { name: "keys" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
      node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
             attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: -1 } } } }
      node { name: "handle" op: "Placeholder" attr { key: "dtype" value { type: DT_)") +
                              type + R"( } } }
      node { name: "via" op: "Identity" input: "handle" attr { key: "T" value { type: DT_RESOURCE } } }
      node { name: "find" op: "LookupTableFindV2" input: "via" input: "keys" input: "none"
             attr { key: "Tin" value { type: DT_STRING } } attr { key: "Tout" value { type: DT_INT64 } } })";
    EXPECT_THAT(LoadError(graph),
                AllOf(HasSubstr("placeholder 'handle'"), HasSubstr("'via' (Identity)"),
                      HasSubstr("freeze"), HasSubstr("table")))
        << type;
  }
}

}  // namespace
}  // namespace floe
