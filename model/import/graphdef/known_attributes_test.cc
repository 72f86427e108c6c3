#include "model/import/graphdef/known_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/framework/node_def.pb.h"

namespace floe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

tensorflow::NodeDef Named(const std::string& op) {
  tensorflow::NodeDef node;
  node.set_name("n");
  node.set_op(op);
  return node;
}

TEST(KnownAttributes, OnesThatNobodyReadsAreRefusedByName) {
  tensorflow::NodeDef node = Named("Relu");
  (*node.mutable_attr())["leak"].set_f(0.5);
  EXPECT_THAT(std::string(CheckAttributes(node).message()),
              AllOf(HasSubstr("node 'n' (Relu)"), HasSubstr("'leak' (f: 0.5)")));
}

TEST(KnownAttributes, OnesThatChangeAnswersMustHaveTheirDefault) {
  tensorflow::NodeDef node = Named("Cast");
  (*node.mutable_attr())["Truncate"].set_b(false);
  EXPECT_TRUE(CheckAttributes(node).ok());
  (*node.mutable_attr())["Truncate"].set_b(true);
  EXPECT_THAT(std::string(CheckAttributes(node).message()),
              AllOf(HasSubstr("'Truncate' (b: true)"), HasSubstr("b: false")));
}

TEST(KnownAttributes, OnesThatAreTheSameOnACpuMayBeThere) {
  tensorflow::NodeDef node = Named("ScatterNd");
  for (const char* const policy : {"", "DEFAULT", "ERROR"}) {
    (*node.mutable_attr())["bad_indices_policy"].set_s(policy);
    EXPECT_TRUE(CheckAttributes(node).ok()) << policy;
  }
  (*node.mutable_attr())["bad_indices_policy"].set_s("IGNORE");
  EXPECT_THAT(std::string(CheckAttributes(node).message()), HasSubstr("'bad_indices_policy'"));
}

TEST(KnownAttributes, HintsNotesAndTypesMayBeThere) {
  tensorflow::NodeDef node = Named("While");
  (*node.mutable_attr())["parallel_iterations"].set_i(3);
  (*node.mutable_attr())["_lower_using_switch_merge"].set_b(true);
  (*node.mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  EXPECT_TRUE(CheckAttributes(node).ok());
}

}  // namespace
}  // namespace floe
