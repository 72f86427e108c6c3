#include "base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/cgroup.h"

namespace floe {
namespace {

constexpr double kMostMemory = 0x1p62;  // version 1 says more than that for none

double LimitOf(const std::string& directory, bool v2) {
  std::vector<double> bytes;
  if (!ReadNumbers(directory + (v2 ? "/memory.max" : "/memory.limit_in_bytes"), 1, &bytes))
    return 0;
  return bytes[0] > 0 && bytes[0] < kMostMemory ? bytes[0] : 0;
}

}  // namespace

int64_t CgroupMemoryLimit(const std::string& root) {
  return static_cast<int64_t>(LeastGroupLimit(root, "memory", LimitOf));
}

int64_t UsableMemory() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const int64_t limit = CgroupMemoryLimit("");
  return limit == 0 ? machine : std::min(machine, limit);
}

}  // namespace floe
