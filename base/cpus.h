// Which CPUs this process may use: affinity and the quota of its control groups.
#pragma once

#include <string>
#include <vector>

namespace floe {

struct UsableCpus {
  std::vector<int> cpus;  // of the affinity mask, ascending; at least one
  double quota = 0;       // CPU time per time, of the strictest group; 0: no limit

  // How many threads can run at once: CPUs, or the quota rounded up where that is less.
  int count() const;
};

// Read with every call. What cannot be read counts as no limit.
UsableCpus FindUsableCpus();

// The quota of cgroup v2 (cpu.max) and v1 (cpu.cfs_quota_us), as of LeastGroupLimit; 0: none.
double CgroupCpuQuota(const std::string& root);

}  // namespace floe
