#include "base/memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/cgroup.h"

// jemalloc's, in programs that are linked with it.
extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* value, size_t size)
    __attribute__((weak));

namespace floe {
namespace {

constexpr double kMostMemory = 0x1p62;  // version 1 says more than that for none

double LimitOf(const std::string& directory, bool v2) {
  std::vector<double> bytes;
  if (!ReadNumbers(directory + (v2 ? "/memory.max" : "/memory.limit_in_bytes"), 1, &bytes))
    return 0;
  return bytes[0] > 0 && bytes[0] < kMostMemory ? bytes[0] : 0;
}

// Of address space, less what programs and libraries already took of it; 0: none.
int64_t AddressSpaceLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(kMostMemory))
    return 0;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return std::max<int64_t>(1, static_cast<int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE));
}

}  // namespace

int64_t CgroupMemoryLimit(const std::string& root) {
  return static_cast<int64_t>(LeastGroupLimit(root, "memory", LimitOf));
}

int64_t UsableMemory() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  int64_t usable = machine;
  for (const int64_t limit : {CgroupMemoryLimit(""), AddressSpaceLimit()})
    if (limit > 0) usable = std::min(usable, limit);
  return usable;
}

void ReleaseFreeMemory() {
  if (mallctl == nullptr) {
    malloc_trim(0);
    return;
  }
  // All arenas: MALLCTL_ARENAS_ALL.
  (void)mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace floe
