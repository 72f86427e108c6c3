#include "runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "base/aligned_buffer.h"

namespace floe {
namespace {

TEST(PlaceBlocks, BlocksAliveTogetherNeverOverlap) {
  std::mt19937 rng(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Block> blocks(40);
    int64_t total = 0;
    for (Block& b : blocks) {
      b.bytes = rng() % 5000;
      b.first = static_cast<int>(rng() % 30);
      b.last = b.first + static_cast<int>(rng() % 6);
      total += static_cast<int64_t>(AlignUp(b.bytes));
    }
    const int64_t size = PlaceBlocks(&blocks);
    EXPECT_LE(size, total);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].offset % static_cast<int64_t>(kAlignment), 0);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, size);
      for (size_t k = 0; k < i; ++k) {
        const Block &a = blocks[i], &b = blocks[k];
        if (a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
            << i << " and " << k;
      }
    }
  }
}

TEST(PlaceBlocks, AChainNeedsOnlyItsTwoLargestNeighbours) {
  std::vector<Block> chain = {{640, 0, 1}, {1280, 1, 2}, {1920, 2, 3}, {64, 3, 4}};
  EXPECT_EQ(PlaceBlocks(&chain), 1280 + 1920);
}

TEST(PlaceInGaps, OnlyBlocksWithRoomBesideTheLivingGetAPlace) {
  std::vector<Block> chain = {{640, 0, 1}, {1280, 1, 2}, {1920, 2, 3}, {64, 3, 4}};
  const int64_t size = PlaceBlocks(&chain);
  std::vector<Block> scratch = {{1280, 1, 1}, {64, 2, 2}, {1280, 3, 3}, {2600, 0, 0}};
  EXPECT_EQ(PlaceInGaps(chain, size, &scratch), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(scratch[0].offset, 640);
}

}  // namespace
}  // namespace floe
