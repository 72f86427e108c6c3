#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/import/import.h"
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
