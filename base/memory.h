// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace floe {

// The machine's, or the limit of its control groups where that is less; read anew with every call.
int64_t UsableMemory();

// The limit of cgroup v2 (memory.max) and v1 (memory.limit_in_bytes), as of LeastGroupLimit; 0:
// none.
int64_t CgroupMemoryLimit(const std::string& root);

}  // namespace floe
