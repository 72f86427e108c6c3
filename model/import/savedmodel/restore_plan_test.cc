// Which tensors of a checkpoint a graph's saver restores.
#include "model/import/savedmodel/restore_plan.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

RestorePlan PlanOf(const std::string& text) {
  tensorflow::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  auto plan = PlanRestore(graph, "");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : RestorePlan();
}

std::string Strings(const std::string& name, const std::string& values) {
  return "node { name: '" + name +
         "' op: 'Const' attr { key: 'value' value { tensor { dtype: " + "DT_STRING " + values +
         " } } } }\n";
}

constexpr char kVariables[] = R"(
  node { name: 'prefix' op: 'Const' }
  node { name: 'a' op: 'VarHandleOp' attr { key: 'shared_name' value { s: 'first' } } }
  node { name: 'b' op: 'VarHandleOp' attr { key: 'shared_name' value { s: 'second' } } }
  node { name: 'same' op: 'Identity' input: 'restore:1' }
  node { name: 'set_a' op: 'AssignVariableOp' input: 'a' input: 'restore' }
  node { name: 'set_b' op: 'AssignVariableOp' input: 'b' input: 'same' }
)";

TEST(RestorePlan, NamesAndPartsAreThoseOfTheOutput) {
  const RestorePlan plan = PlanOf(
      kVariables + Strings("names", "string_val: 'x' string_val: 'y'") +
      Strings("parts", "string_val: '' string_val: '8 0,4'") +
      "node { name: 'restore' op: 'RestoreV2' input: 'prefix' input: 'names' input: 'parts' }");
  ASSERT_EQ(plan.variables.size(), 2);
  EXPECT_EQ(plan.variables.at("first").name, "x");
  EXPECT_EQ(plan.variables.at("first").part, "");
  EXPECT_EQ(plan.variables.at("second").name, "y");
  EXPECT_EQ(plan.variables.at("second").part, "8 0,4");
}

TEST(RestorePlan, RestoredNamesAreNoNames) {
  for (const std::string names : {"restore", "other"}) {
    const RestorePlan plan =
        PlanOf(kVariables + Strings("parts", "string_val: ''") +
               "node { name: 'restore' op: 'RestoreV2' input: 'prefix' input: '" + names +
               "' input: 'parts' }" +
               "node { name: 'other' op: 'RestoreV2' input: 'prefix' input: 'restore' " +
               "input: 'restore:1' }");
    EXPECT_TRUE(plan.variables.empty());
  }
}

}  // namespace
}  // namespace floe
