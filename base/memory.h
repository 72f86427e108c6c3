// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace floe {

// The machine's, or where that is less the limit of its control groups, or what is left of the
// process's address space (ulimit -v); Read with every call.
int64_t UsableMemory();

// The limit of cgroup v2 (memory.max) and v1 (memory.limit_in_bytes), as of LeastGroupLimit; 0:
// none.
int64_t CgroupMemoryLimit(const std::string& root);

// Asks the allocator in use to give the system what nothing holds: after much was freed at once.
void ReleaseFreeMemory();

}  // namespace floe
