#include "kernels/cpu/op_cost.h"

#include <gtest/gtest.h>

#include <set>

#include "model/op_def.h"

namespace floe::kernels {
namespace {

TEST(OpCost, NamesOpsThatThereAreOnce) {
  std::set<std::string> seen;
  for (const std::string& op : OpsWithCosts()) {
    EXPECT_NE(FindOp(op), nullptr) << op;
    EXPECT_TRUE(seen.insert(op).second) << op << " has two costs";
  }
}

TEST(OpCost, OfAnOpThatIsMissingIsAPlainLoop) {
  EXPECT_EQ(CostOfOp("NoSuchOp").basis, CostBasis::kOutput);
  EXPECT_GT(CostOfOp("NoSuchOp").rate, CostOfOp("Add").rate);
  EXPECT_GT(CostOfOp("Tanh").rate, CostOfOp("Relu").rate);
}

}  // namespace
}  // namespace floe::kernels
