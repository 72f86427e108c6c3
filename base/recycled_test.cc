#include "base/recycled.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace floe {
namespace {

TEST(BlockStore, BlocksInUseAreApart) {
  BlockStore store(24);
  std::set<void*> taken;
  for (size_t i = 0; i < 2 * BlockStore::kMost; ++i) EXPECT_TRUE(taken.insert(store.Take()).second);
  for (void* const block : taken) store.Give(block);  // more than are kept
  std::set<void*> again;
  for (size_t i = 0; i < BlockStore::kMost; ++i) EXPECT_TRUE(again.insert(store.Take()).second);
  for (void* const block : again) store.Give(block);
}

TEST(BlockStore, ManyThreadsTakeAndGive) {
  BlockStore store(sizeof(uint64_t));
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&store, thread] {
      std::vector<uint64_t*> mine;
      for (uint64_t i = 0; i < 2000; ++i) {
        mine.push_back(new (store.Take()) uint64_t(thread << 32 | i));
        if (i % 3 != 2) continue;
        EXPECT_EQ(*mine.back(), thread << 32 | i);
        store.Give(mine.back());
        mine.pop_back();
      }
      for (uint64_t* const block : mine) {
        EXPECT_EQ(*block >> 32, thread) << "another thread was given the same block";
        store.Give(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(RecyclingAllocator, SharedObjectsEndAsOthersDo) {
  auto first = std::allocate_shared<std::string>(RecyclingAllocator<std::string>(), 100, 'a');
  const std::weak_ptr<std::string> seen = first;
  EXPECT_EQ(first->size(), 100u);
  first.reset();
  EXPECT_TRUE(seen.expired());
  const auto second = std::allocate_shared<std::string>(RecyclingAllocator<std::string>(), "b");
  EXPECT_EQ(*second, "b");
}

}  // namespace
}  // namespace floe
