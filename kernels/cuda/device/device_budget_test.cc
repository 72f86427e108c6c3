#include "kernels/cuda/device/device_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace floe::cuda {
namespace {

TEST(DeviceBudget, GrantsExactlyItsLimit) {
  const DeviceBudget budget("cuda:1", 512);
  auto first = budget.Take(511);
  ASSERT_TRUE(first.ok());
  auto second = budget.Take(1);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(budget.in_use(), 512);
  const absl::Status refused = budget.Take(1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(refused.message()),
            "cuda:1: 1 B are needed, and 512 B of gpu_memory_limit, 512 B, are in use");
  *first = DeviceShare();
  EXPECT_EQ(budget.in_use(), 1);
  EXPECT_TRUE(budget.Take(511).ok());
}

TEST(DeviceBudget, SharesMoveAndOutliveIt) {
  std::optional<DeviceBudget> budget(std::in_place, "cuda:0", 0);
  DeviceShare kept = *budget->Take(int64_t{1} << 50);
  DeviceShare moved = std::move(kept);
  EXPECT_EQ(moved.bytes(), int64_t{1} << 50);
  const DeviceBudget copy = *budget;
  budget.reset();
  EXPECT_EQ(copy.in_use(), int64_t{1} << 50);
  moved = DeviceShare();
  EXPECT_EQ(copy.in_use(), 0);
}

TEST(DeviceBudget, IsExactFromManyThreads) {
  const DeviceBudget budget("cuda:0", 100);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> granted{0};
  std::vector<std::vector<DeviceShare>> held(4);
  for (auto& mine : held)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        if (auto share = budget.Take(1); share.ok()) {
          ++granted;
          mine.push_back(*std::move(share));
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 100);
  held.clear();
  EXPECT_EQ(budget.in_use(), 0);
}

}  // namespace
}  // namespace floe::cuda
