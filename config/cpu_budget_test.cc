#include "config/cpu_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace floe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ModelConfig Config() {
  ModelConfig config;
  config.name = "m";
  return config;
}

TEST(CpuBudget, WorkersLeaveOneCpuUnlessTheyAreConfigured) {
  const auto cpus = [](int count) { return UsableCpus{std::vector<int>(count), 0}; };
  ModelConfig model = Config();
  model.workers = 0;
  EXPECT_EQ(WorkersOf(model, {}, cpus(1)), 1);
  EXPECT_EQ(WorkersOf(model, {}, cpus(2)), 1);
  EXPECT_EQ(WorkersOf(model, {}, cpus(8)), 7);
  EXPECT_EQ(WorkersOf(model, {}, cpus(64)), 16);
  EXPECT_EQ(WorkersOf(model, {}, UsableCpus{std::vector<int>(8), 2.5}), 2)
      << "a quota of three CPUs";
  model.intra_op_threads = 3;
  EXPECT_EQ(WorkersOf(model, {}, cpus(8)), 2);
  model.intra_op_threads = 1;
  model.cpu_set = {1, 2, 3};
  EXPECT_EQ(WorkersOf(model, {}, cpus(8)), 2);
  EXPECT_EQ(WorkersOf(model, {}, cpus(2)), 1);
  model.workers = 9;
  EXPECT_EQ(WorkersOf(model, {}, cpus(2)), 9);
}

TEST(CpuBudget, WorkersOfSeveralModelsAreByWeight) {
  const UsableCpus nine{std::vector<int>(9), 0};
  ModelConfig model = Config();
  EXPECT_EQ(WorkersOf(model, {.sum = 1}, nine), 8);
  EXPECT_EQ(WorkersOf(model, {.sum = 2}, nine), 4);
  EXPECT_EQ(WorkersOf(model, {.sum = 3}, nine), 3) << "rounded up";
  EXPECT_EQ(WorkersOf(model, {.sum = 500}, nine), 1);
  model.weight = 3;
  EXPECT_EQ(WorkersOf(model, {.heaviest = 3, .sum = 4}, nine), 6);
  model.cpu_set = {0, 1, 2};
  EXPECT_EQ(WorkersOf(model, {.heaviest = 3, .sum = 4}, nine), 2) << "CPUs of its own";
}

TEST(CpuBudget, WarnsOfMoreThreadsThanCpus) {
  ModelConfig a = Config(), b = Config();
  a.name = "a";
  a.workers = a.intra_op_threads = 2;
  b.workers = 1;
  b.weight = 5;
  EXPECT_EQ(CpuSharesOf({}).heaviest, 1);
  EXPECT_EQ(CpuSharesOf({a, b}).heaviest, 5);
  EXPECT_EQ(CpuSharesOf({a, b}).sum, 6);
  const UsableCpus five{{0, 1, 2, 3, 4}, 0}, four{{0, 1, 2, 3}, 0}, three{{0, 1, 2, 3}, 2.5};
  EXPECT_THAT(CpuBudgetWarnings({a, b}, five), IsEmpty());
  EXPECT_THAT(CpuBudgetWarnings({a, b}, four), ElementsAre(HasSubstr("are 5 for 4 CPUs")));
  EXPECT_THAT(CpuBudgetWarnings({a, b}, three),
              ElementsAre(AllOf(HasSubstr("'a'"), HasSubstr("4 threads for 3 CPUs"))));
  b.workers = 0;
  EXPECT_THAT(CpuBudgetWarnings({a, b}, four), IsEmpty()) << "sharing is what auto means";
  a.cpu_set = {0, 1};
  EXPECT_THAT(CpuBudgetWarnings({a}, five), ElementsAre(HasSubstr("4 threads for 2 CPUs")));
  b.cpu_set = {4, 5, 6};
  EXPECT_THAT(CpuBudgetWarnings({b}, five),
              ElementsAre(AllOf(HasSubstr("will not be served here"), HasSubstr("(5, 6)"))));
}

}  // namespace
}  // namespace floe
