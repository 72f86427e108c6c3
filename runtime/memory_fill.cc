#include "runtime/memory_fill.h"

#include <algorithm>
#include <cstring>

namespace floe {
namespace {

constexpr size_t kPeriod = 16;

// As a float32 0x5a5a5a5a is 1.5e16, as an int32 1.5e9.
constexpr unsigned char kPatterns[][kPeriod] = {
    {},
    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff},
    {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0, 0, 0, 0, 0, 0, 0, 0},
};

const unsigned char* PatternOf(MemoryFill fill) { return kPatterns[static_cast<size_t>(fill)]; }

}  // namespace

void FillMemory(MemoryFill fill, void* block, size_t bytes) {
  if (fill == MemoryFill::kNone || bytes == 0) return;
  auto* const to = static_cast<unsigned char*>(block);
  size_t done = std::min(bytes, kPeriod);
  std::memcpy(to, PatternOf(fill), done);
  while (done < bytes) {  // what is filled, doubled
    const size_t more = std::min(done, bytes - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
}

bool StillFilled(MemoryFill fill, const void* block, size_t from, size_t to) {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  const unsigned char* const pattern = PatternOf(fill);
  for (size_t i = from; fill != MemoryFill::kNone && i < to; ++i) {
    if (bytes[i] != pattern[i % kPeriod]) return false;
  }
  return true;
}

}  // namespace floe
