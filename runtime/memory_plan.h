// Places blocks with lifetimes into one arena: greedy by size, first gap that fits (Pisarchyk &
// Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, "greedy by size").
#pragma once

#include <cstdint>
#include <vector>

namespace floe {

struct Block {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps, inclusive
  int64_t offset = 0;       // result, a multiple of kAlignment
};

// Sets offsets such that blocks alive at the same step do not overlap; returns the arena's size.
int64_t PlaceBlocks(std::vector<Block>* blocks);

// As PlaceBlocks, but in an arena of `size` bytes that holds `placed`: returns whether each of
// `blocks` found room, and sets the offsets of those. They must not be alive together.
std::vector<bool> PlaceInGaps(const std::vector<Block>& placed, int64_t size,
                              std::vector<Block>* blocks);

}  // namespace floe
