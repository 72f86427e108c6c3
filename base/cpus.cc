#include "base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/cgroup.h"

namespace floe {
namespace {

double QuotaOf(const std::string& directory, bool v2) {
  std::vector<double> numbers;
  const bool limited = v2 ? ReadNumbers(directory + "/cpu.max", 2, &numbers)
                          : ReadNumbers(directory + "/cpu.cfs_quota_us", 1, &numbers) &&
                                ReadNumbers(directory + "/cpu.cfs_period_us", 2, &numbers);
  if (!limited || numbers[0] <= 0 || numbers[1] <= 0) return 0;  // v1 says -1 for none
  return numbers[0] / numbers[1];
}

}  // namespace

int UsableCpus::count() const {
  const int by_mask = std::max(1, static_cast<int>(cpus.size()));
  if (quota <= 0) return by_mask;
  return std::clamp(static_cast<int>(std::ceil(quota)), 1, by_mask);
}

double CgroupCpuQuota(const std::string& root) { return LeastGroupLimit(root, "cpu", QuotaOf); }

UsableCpus FindUsableCpus() {
  UsableCpus usable;
  usable.quota = CgroupCpuQuota("");
  // The kernel refuses masks with fewer bits than it has CPUs.
  for (int bits = CPU_SETSIZE; bits <= (1 << 20); bits *= 2) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    const size_t size = CPU_ALLOC_SIZE(bits);
    const bool got = sched_getaffinity(0, size, mask) == 0;
    for (int cpu = 0; got && cpu < bits; ++cpu)
      if (CPU_ISSET_S(cpu, size, mask)) usable.cpus.push_back(cpu);
    CPU_FREE(mask);
    if (got) return usable;
  }
  for (unsigned cpu = 0; cpu < std::max(1u, std::thread::hardware_concurrency()); ++cpu)
    usable.cpus.push_back(static_cast<int>(cpu));
  return usable;
}

}  // namespace floe
