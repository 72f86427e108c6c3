// Variables become constants wherever their handles go.
#include "model/import/savedmodel/freeze_variables.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "model/import/graphdef/graphdef.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using testing::AllOf;
using testing::HasSubstr;

GraphDef Parse(const std::string& text) {
  GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

template <typename Nodes>
const NodeDef& Named(const Nodes& nodes, const std::string& name) {
  static const NodeDef none;
  for (const NodeDef& node : nodes) {
    if (node.name() == name) return node;
  }
  ADD_FAILURE() << "no node " << name;
  return none;
}

std::string Handle(const std::string& name) {
  return "node { name: '" + name +
         "' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } " +
         "attr { key: 'shared_name' value { s: 'var' } } }\n";
}
std::string Typed(const std::string& key, const std::string& type = "DT_RESOURCE") {
  return "attr { key: '" + key + "' value { type: " + type + " } } ";
}
std::string Types(const std::string& key, const std::string& types) {
  return "attr { key: '" + key + "' value { list { " + types + " } } } ";
}
std::string Function(const std::string& key, const std::string& name) {
  return "attr { key: '" + key + "' value { func { name: '" + name + "' } } } ";
}

// x + the variable; passes its handle on as the second result.
constexpr char kAddVariable[] = R"(
  function {
    signature { name: 'add' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'v' type: DT_RESOURCE }
                output_arg { name: 'y' type: DT_FLOAT } output_arg { name: 'w' type: DT_RESOURCE } }
    node_def { name: 'read' op: 'ReadVariableOp' input: 'v' attr { key: 'dtype' value { type: DT_FLOAT } } }
    node_def { name: 'sum' op: 'AddV2' input: 'x' input: 'read:value:0' attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: 'same' op: 'Identity' input: 'v' attr { key: 'T' value { type: DT_RESOURCE } } }
    node_def { name: 'idle' op: 'AssignVariableOp' input: 'v' input: 'x' }
    ret { key: 'y' value: 'sum:z:0' } ret { key: 'w' value: 'same:output:0' }
  } )";

TEST(FreezeVariables, ReadsBecomeIdentities) {
  GraphDef graph = Parse(Handle("h") + "node { name: 'i' op: 'Identity' input: 'h' " + Typed("T") +
                         "}"
                         "node { name: 'r' op: 'ReadVariableOp' input: 'i' }"
                         "node { name: 's' op: 'VariableShape' input: 'h' }"
                         "node { name: 'k' op: 'VarIsInitializedOp' input: 'h' input: '^r' }");
  const auto frozen = FreezeVariables(&graph);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_TRUE(frozen->refused.empty());
  EXPECT_EQ(Named(graph.node(), "h").op(), "Const");
  EXPECT_EQ(Named(graph.node(), "h").attr().at(kVariableAttr).s(), "var");
  EXPECT_EQ(Named(graph.node(), "i").attr().at("T").type(), tensorflow::DT_FLOAT);
  EXPECT_EQ(Named(graph.node(), "r").op(), "Identity");
  EXPECT_EQ(Named(graph.node(), "s").op(), "Shape");
  EXPECT_EQ(Named(graph.node(), "k").op(), "Const");
}

TEST(FreezeVariables, GathersTakeTheirAxis) {
  GraphDef graph =
      Parse(Handle("h") +
            "node { name: 'ids' op: 'Placeholder' }"
            "node { name: 'g' op: 'ResourceGather' input: 'h' input: 'ids' input: '^ids' "
            "attr { key: 'batch_dims' value { i: 1 } } }");
  ASSERT_TRUE(FreezeVariables(&graph).ok());
  const NodeDef& gather = Named(graph.node(), "g");
  EXPECT_EQ(gather.op(), "GatherV2");
  EXPECT_THAT(gather.input(), testing::ElementsAre("h", "ids", "g/axis", "^ids"));
  EXPECT_EQ(Named(graph.node(), "g/axis").attr().at("value").tensor().int_val(0), 1);
}

TEST(FreezeVariables, FunctionsTakeValuesForHandles) {
  GraphDef graph = Parse(Handle("h") +
                         "node { name: 'x' op: 'Placeholder' }"
                         "node { name: 'c' op: 'StatefulPartitionedCall' input: 'x' input: 'h' " +
                         Function("f", "add") + Types("Tin", "type: DT_FLOAT type: DT_RESOURCE") +
                         Types("Tout", "type: DT_FLOAT type: DT_RESOURCE") +
                         "}"
                         "node { name: 'r' op: 'ReadVariableOp' input: 'c:1' } library {" +
                         kAddVariable + "}");
  const auto frozen = FreezeVariables(&graph);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_TRUE(frozen->refused.empty()) << frozen->refused.begin()->second;
  const NodeDef& call = Named(graph.node(), "c");
  EXPECT_EQ(call.attr().at("Tin").list().type(1), tensorflow::DT_FLOAT);
  EXPECT_EQ(call.attr().at("Tout").list().type(1), tensorflow::DT_FLOAT);
  EXPECT_EQ(Named(graph.node(), "r").op(), "Identity");
  ASSERT_EQ(graph.library().function_size(), 1);
  const tensorflow::FunctionDef& function = graph.library().function(0);
  EXPECT_EQ(function.signature().name(), call.attr().at("f").func().name());
  EXPECT_EQ(function.signature().input_arg(1).type(), tensorflow::DT_FLOAT);
  EXPECT_EQ(function.signature().output_arg(1).type(), tensorflow::DT_FLOAT);
  EXPECT_EQ(Named(function.node_def(), "sum").input(1), "read:output:0");
  EXPECT_EQ(function.node_def_size(), 3) << "what no result needs is gone";
}

TEST(FreezeVariables, BranchesAgreeOnWhatTheyReturn) {
  const std::string other = R"(
    function { signature { name: 'other' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'v' type: DT_RESOURCE }
                           output_arg { name: 'y' type: DT_FLOAT } output_arg { name: 'w' type: DT_RESOURCE } }
      node_def { name: 'table' op: 'HashTableV2' }
      ret { key: 'y' value: 'x' } ret { key: 'w' value: 'table:table_handle:0' } } )";
  const auto graph_of = [&](const std::string& second) {
    return Parse(Handle("h") +
                 "node { name: 'p' op: 'Placeholder' } node { name: 'x' op: 'Placeholder' }"
                 "node { name: 'i' op: 'If' input: 'p' input: 'x' input: 'h' " +
                 Function("then_branch", "add") + Function("else_branch", second) +
                 Types("Tin", "type: DT_FLOAT type: DT_RESOURCE") +
                 Types("Tout", "type: DT_FLOAT type: DT_RESOURCE") + "} library {" + kAddVariable +
                 other + "}");
  };
  GraphDef same = graph_of("add");
  const auto frozen = FreezeVariables(&same);
  ASSERT_TRUE(frozen.ok());
  EXPECT_TRUE(frozen->refused.empty());
  EXPECT_EQ(Named(same.node(), "i").attr().at("Tin").list().type(1), tensorflow::DT_FLOAT);
  GraphDef mixed = graph_of("other");
  const auto refused = FreezeVariables(&mixed);
  ASSERT_TRUE(refused.ok());
  ASSERT_EQ(refused->refused.count("i"), 1u);
}

TEST(FreezeVariables, AssignmentsAreRefusedByName) {
  GraphDef graph =
      Parse(Handle("h") +
            "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } }"
            "node { name: 'x' op: 'Placeholder' }"
            "node { name: 'a' op: 'AssignAddVariableOp' input: 'h' input: 'x' }"
            "node { name: 'b' op: 'ScatterAdd' input: 'v' input: 'x' input: 'x' }"
            "node { name: 'y' op: 'Neg' input: 'v' }"
            "node { name: 'c' op: 'PartitionedCall' input: 'h' input: 'x' " +
            Function("f", "set") +
            "} library {"
            "function { signature { name: 'set' input_arg { name: 'v' type: DT_RESOURCE } "
            "input_arg { name: 'x' type: DT_FLOAT } "
            "                       control_output: 'done' }"
            "  node_def { name: 'inner' op: 'AssignVariableOp' input: 'v' input: 'x' } control_ret "
            "{ key: 'done' value: 'inner' } } }");
  const auto frozen = FreezeVariables(&graph);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  ASSERT_EQ(frozen->refused.size(), 3u);
  EXPECT_THAT(std::string(frozen->refused.at("a").message()),
              HasSubstr("'a' (AssignAddVariableOp) assigns"));
  EXPECT_THAT(std::string(frozen->refused.at("b").message()),
              HasSubstr("'b' (ScatterAdd) assigns"));
  EXPECT_THAT(std::string(frozen->refused.at("c").message()),
              AllOf(HasSubstr("function 'set'"), HasSubstr("'inner' (AssignVariableOp) assigns")));
  EXPECT_EQ(Named(graph.node(), "y").op(), "Neg");
}

TEST(FreezeVariables, CallsOfNothingAreRefused) {
  GraphDef graph = Parse("node { name: 'c' op: 'PartitionedCall' " + Function("g", "f") +
                         "} node { name: 'w' op: 'While' " + Function("cond", "f") +
                         "} node { name: 'h' op: 'VarHandleOp' }");
  const auto frozen = FreezeVariables(&graph);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_THAT(std::string(frozen->refused.at("c").message()), HasSubstr("function 'f'"));
  EXPECT_THAT(std::string(frozen->refused.at("w").message()), HasSubstr("no function 'f'"));
  EXPECT_THAT(std::string(frozen->refused.at("h").message()), HasSubstr("'dtype'"));
}

TEST(FreezeVariables, FunctionsThatCallThemselvesEnd) {
  GraphDef graph =
      Parse("node { name: 'c' op: 'PartitionedCall' " + Function("f", "f") +
            "} library {"
            "function { signature { name: 'f' output_arg { name: 'y' type: DT_FLOAT } }"
            "  node_def { name: 'n' op: 'PartitionedCall' " +
            Function("f", "f") + "} ret { key: 'y' value: 'n:output:0' } } }");
  const auto frozen = FreezeVariables(&graph);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_THAT(std::string(frozen->refused.at("c").message()), HasSubstr("calls itself"));
}

}  // namespace
}  // namespace floe
