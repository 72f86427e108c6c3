// The walk over control groups; what cpus_test and memory_test read there is the files' affair.
#include "base/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/cgroup_for_test.h"

namespace floe {
namespace {

using ::testing::ElementsAre;

double LimitIn(const std::string& directory, bool v2) {
  std::vector<double> numbers;
  return ReadNumbers(directory + (v2 ? "/limit" : "/old_limit"), 1, &numbers) ? numbers[0] : 0;
}

TEST_F(CgroupTest, BothVersionsCountWhereBothAreMounted) {
  Write("/proc/self/mountinfo",
        "30 23 0:26 / /new rw - cgroup2 cgroup2 rw\n"
        "33 31 0:30 / /old rw - cgroup cgroup rw,cpu\n");
  Write("/proc/self/cgroup", "3:cpu:/a\n0::/b\n");
  Write("/new/b/limit", "5\n");
  EXPECT_EQ(LeastGroupLimit(root_, "cpu", LimitIn), 5);
  Write("/old/a/old_limit", "4\n");
  EXPECT_EQ(LeastGroupLimit(root_, "cpu", LimitIn), 4);
  EXPECT_EQ(LeastGroupLimit(root_, "memory", LimitIn), 5) << "version 1 has no such controller";
}

TEST_F(CgroupTest, AGroupOutsideWhatIsMountedIsNotFollowed) {
  Write("/proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  Write("/proc/self/cgroup", "0::/../elsewhere\n");
  Write("/elsewhere/limit", "1\n");
  Write("/cg/limit", "7\n");
  EXPECT_EQ(LeastGroupLimit(root_, "cpu", LimitIn), 7);
}

TEST_F(CgroupTest, NumbersOfALine) {
  const auto read = [this](const std::string& text, size_t count) {
    Write("/file", text);
    std::vector<double> numbers;
    return ReadNumbers(root_ + "/file", count, &numbers) ? numbers : std::vector<double>();
  };
  EXPECT_THAT(read("50000 100000\n2\n", 2), ElementsAre(50000, 100000));
  EXPECT_THAT(read("50000\n", 2), ElementsAre());
  EXPECT_THAT(read("1 2 3\n", 2), ElementsAre());
  EXPECT_THAT(read("max 100000\n", 2), ElementsAre());
  EXPECT_THAT(read("", 1), ElementsAre());
}

}  // namespace
}  // namespace floe
