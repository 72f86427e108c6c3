#include "runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/aligned_buffer.h"

namespace floe {
namespace {

int64_t Aligned(int64_t bytes) { return static_cast<int64_t>(AlignUp(static_cast<size_t>(bytes))); }

std::vector<int> Indices(const std::vector<Block>& blocks) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The offset of the first gap for `block` between blocks that are alive with it; `placed` are the
// indices of those with a place, by offset.
int64_t FirstGap(const std::vector<Block>& blocks, const std::vector<int>& placed,
                 const Block& block) {
  int64_t offset = 0;
  for (int k : placed) {
    const Block& other = blocks[k];
    if (other.last < block.first || block.last < other.first) continue;
    if (other.offset - offset >= Aligned(block.bytes)) break;
    offset = std::max(offset, other.offset + Aligned(other.bytes));
  }
  return offset;
}

}  // namespace

int64_t PlaceBlocks(std::vector<Block>* blocks) {
  std::vector<int> order = Indices(*blocks);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return (*blocks)[a].bytes > (*blocks)[b].bytes; });
  std::vector<int> placed;  // by offset
  int64_t size = 0;
  for (int i : order) {
    Block& block = (*blocks)[i];
    if (block.bytes == 0) continue;
    block.offset = FirstGap(*blocks, placed, block);
    size = std::max(size, block.offset + Aligned(block.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](int a, int b) { return (*blocks)[a].offset < (*blocks)[b].offset; }),
        i);
  }
  return size;
}

std::vector<bool> PlaceInGaps(const std::vector<Block>& placed, int64_t size,
                              std::vector<Block>* blocks) {
  std::vector<int> by_offset = Indices(placed);
  std::erase_if(by_offset, [&](int i) { return placed[i].bytes == 0; });
  std::sort(by_offset.begin(), by_offset.end(),
            [&](int a, int b) { return placed[a].offset < placed[b].offset; });
  std::vector<bool> found;
  for (Block& block : *blocks) {
    const int64_t offset = FirstGap(placed, by_offset, block);
    found.push_back(offset + Aligned(block.bytes) <= size);
    if (found.back()) block.offset = offset;
  }
  return found;
}

}  // namespace floe
