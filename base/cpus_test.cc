#include "base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "base/cgroup_for_test.h"

namespace floe {
namespace {

TEST_F(CgroupTest, NothingThereIsNoLimit) { EXPECT_EQ(CgroupCpuQuota(root_), 0); }

TEST_F(CgroupTest, Version2TakesTheStrictestGroupOnTheWayUp) {
  Write("/proc/self/mountinfo",
        "24 1 0:22 / /proc rw - proc proc rw\n"
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  Write("/proc/self/cgroup", "0::/system.slice/floed.service\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 0);
  Write("/sys/fs/cgroup/system.slice/floed.service/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 0);
  Write("/sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 2.5);
  Write("/sys/fs/cgroup/system.slice/floed.service/cpu.max", "50000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 0.5);
  Write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 0.2);
}

TEST_F(CgroupTest, Version1WithSeveralControllersOnAMount) {
  Write("/proc/self/mountinfo",
        "32 31 0:29 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
        "33 31 0:30 / /cg/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n");
  Write("/proc/self/cgroup", "5:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/abc\n0::/\n");
  Write("/cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("/cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 0);
  Write("/cg/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000\n");
  Write("/cg/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 3);
}

TEST_F(CgroupTest, AContainerSeesItsOwnGroupAsTheRoot) {
  Write("/proc/self/mountinfo",
        "33 31 0:30 /docker/abc /cg/cpu rw,relatime - cgroup cgroup rw,cpu\n");
  Write("/proc/self/cgroup", "4:cpu:/docker/abc/inner\n");
  Write("/cg/cpu/cpu.cfs_quota_us", "400000\n");
  Write("/cg/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 4);
  Write("/cg/cpu/inner/cpu.cfs_quota_us", "100000\n");
  Write("/cg/cpu/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 1);
  Write("/proc/self/cgroup", "4:cpu:/../other\n");
  EXPECT_EQ(CgroupCpuQuota(root_), 4) << "a group that is not mounted here";
}

TEST_F(CgroupTest, BrokenFilesAreNoLimit) {
  Write("/proc/self/mountinfo",
        "x\n30 23 0:26 / /c rw - cgroup2\n31 1 0:1 / /c rw - cgroup2 c rw\n");
  Write("/proc/self/cgroup", "nonsense\n0::/a\n");
  for (const char* text : {"", "100000", "many 100000", "0 100000", "100 0", "-5 100000"}) {
    Write("/c/a/cpu.max", text);
    EXPECT_EQ(CgroupCpuQuota(root_), 0) << text;
  }
}

TEST(UsableCpus, CountIsTheLesserOfCpusAndQuota) {
  EXPECT_EQ((UsableCpus{{0, 1, 5}, 0}).count(), 3);
  EXPECT_EQ((UsableCpus{{0, 1, 5}, 1.5}).count(), 2);
  EXPECT_EQ((UsableCpus{{0, 1, 5}, 0.1}).count(), 1);
  EXPECT_EQ((UsableCpus{{0, 1, 5}, 8}).count(), 3);
}

TEST(UsableCpus, FollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const UsableCpus all = FindUsableCpus();
  ASSERT_FALSE(all.cpus.empty());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(all.cpus.back(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(FindUsableCpus().cpus, std::vector<int>{all.cpus.back()});
  EXPECT_EQ(FindUsableCpus().count(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace floe
