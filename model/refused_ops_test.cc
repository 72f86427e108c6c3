#include "model/refused_ops.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "model/op_def.h"

namespace floe {
namespace {

std::string GroupOf(const std::string& op) {
  const RefusedOps* const refused = FindRefusedOp(op);
  return refused == nullptr ? "" : refused->group;
}

TEST(RefusedOps, AreFoundByNameAndByPattern) {
  EXPECT_EQ(GroupOf("SimpleMLInferenceOpWithHandle"), "Decision forests");
  EXPECT_EQ(GroupOf("PyFunc"), "Python inside the graph");
  EXPECT_EQ(GroupOf("ReluGrad"), "Training");
  EXPECT_EQ(GroupOf("WhitespaceTokenizeWithOffsets"), "TensorFlow Text");
  EXPECT_EQ(GroupOf("TPUReplicatedInput"), "Several devices or machines");
  EXPECT_EQ(GroupOf("MatrixSquareRoot"), "Functions of matrices");
  EXPECT_EQ(GroupOf("XlaCallModule"), "Programs of JAX");
  EXPECT_EQ(GroupOf("XlaSharding"), "Several devices or machines");
}

TEST(RefusedOps, KnowNothingOfSupportedAndForeignOps) {
  EXPECT_EQ(GroupOf("ScatterNd"), "");  // a name of the group of assignments would match
  EXPECT_EQ(GroupOf("MatMul"), "");
  EXPECT_EQ(GroupOf("MyCompanysOwnOp"), "");
  EXPECT_EQ(GroupOf(""), "");
}

TEST(RefusedOps, HaveReasonsAndNamesThatAreNotSupported) {
  std::set<std::string> seen;
  for (const RefusedOps& group : AllRefusedOps()) {
    EXPECT_NE(std::string(group.why), "") << group.group;
    for (const std::string& name : NamesOf(group)) {
      EXPECT_EQ(FindTensorFlowOp(name), nullptr) << name << " is supported; take it out";
      EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
    }
  }
}

}  // namespace
}  // namespace floe
