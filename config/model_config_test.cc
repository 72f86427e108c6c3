// What counts as a change of a model.
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/model_changes_for_test.h"

namespace floe {
namespace {

TEST(ModelConfig, EverySettingCounts) {
  const ModelConfig before;
  for (const ModelChange& change : ModelChanges()) {
    ModelConfig after;
    change.make(after);
    EXPECT_FALSE(after == before) << change.name;
    EXPECT_EQ(after, ModelConfig(after)) << change.name;
  }
}

TEST(ModelConfig, WhereItWasWrittenDoesNotCount) {
  ModelConfig a, b;
  b.where = "elsewhere:3";
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace floe
