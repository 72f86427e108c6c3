#include "runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/aligned_buffer.h"

namespace floe {

int64_t PlaceBlocks(std::vector<Block>* blocks) {
  std::vector<int> order(blocks->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return (*blocks)[a].bytes > (*blocks)[b].bytes; });
  std::vector<int> placed;  // by offset
  int64_t size = 0;
  for (int i : order) {
    Block& block = (*blocks)[i];
    if (block.bytes == 0) continue;
    const auto bytes = static_cast<int64_t>(AlignUp(static_cast<size_t>(block.bytes)));
    int64_t offset = 0;
    for (int k : placed) {
      const Block& other = (*blocks)[k];
      if (other.last < block.first || block.last < other.first) continue;
      if (other.offset - offset >= bytes) break;
      offset = std::max(
          offset, other.offset + static_cast<int64_t>(AlignUp(static_cast<size_t>(other.bytes))));
    }
    block.offset = offset;
    size = std::max(size, offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](int a, int b) { return (*blocks)[a].offset < (*blocks)[b].offset; }),
        i);
  }
  return size;
}

}  // namespace floe
