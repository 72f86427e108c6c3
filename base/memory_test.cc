#include "base/memory.h"

#include <gtest/gtest.h>

#include "base/cgroup_for_test.h"

namespace floe {
namespace {

using MemoryLimit = CgroupTest;

TEST_F(MemoryLimit, Version2TakesTheLeastOnTheWayUp) {
  EXPECT_EQ(CgroupMemoryLimit(root_), 0) << "nothing there";
  Write("/proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  Write("/proc/self/cgroup", "0::/pod/container\n");
  Write("/cg/pod/container/memory.max", "max\n");
  EXPECT_EQ(CgroupMemoryLimit(root_), 0);
  Write("/cg/pod/memory.max", "8589934592\n");
  EXPECT_EQ(CgroupMemoryLimit(root_), int64_t{8} << 30);
  Write("/cg/pod/container/memory.max", "1073741825\n");
  EXPECT_EQ(CgroupMemoryLimit(root_), (int64_t{1} << 30) + 1);
}

TEST_F(MemoryLimit, Version1SaysAHugeNumberForNone) {
  Write("/proc/self/mountinfo", "33 31 0:30 /docker/a /cg/memory rw - cgroup cgroup rw,memory\n");
  Write("/proc/self/cgroup", "7:cpu:/docker/a\n4:memory:/docker/a\n");
  Write("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CgroupMemoryLimit(root_), 0);
  Write("/cg/memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(CgroupMemoryLimit(root_), int64_t{512} << 20);
}

TEST(UsableMemory, IsSome) { EXPECT_GT(UsableMemory(), int64_t{1} << 20); }

}  // namespace
}  // namespace floe
