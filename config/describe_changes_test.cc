#include "config/describe_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace floe {
namespace {

ModelConfig Model(const std::string& name) {
  ModelConfig model;
  model.name = name;
  model.base_path = "/" + name;
  return model;
}

TEST(DescribeChanges, NamesModelsAndKeys) {
  ModelConfig before = Model("a"), after = before;
  after.workers = 7;
  after.versions.latest = 3;
  after.batching.max_batch_size = 9;
  EXPECT_EQ(
      DescribeChanges({before, Model("c"), Model("same")}, {after, Model("b"), Model("same")}),
      "added 'b'; changed 'a' (versions, workers, batching.max_batch_size); removed 'c'");
  EXPECT_EQ(DescribeChanges({before}, {before}), "nothing changed");
}

TEST(DescribeChanges, NamesSomeOfMany) {
  std::vector<ModelConfig> many;
  for (int i = 0; i < 30; ++i) many.push_back(Model(absl::StrCat("m", i)));
  EXPECT_THAT(DescribeChanges({}, many), testing::EndsWith(" and 10 more"));
}

}  // namespace
}  // namespace floe
