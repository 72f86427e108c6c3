#include "base/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/parse_number.h"

namespace floe {
namespace {

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

bool Contains(const std::string& list, std::string_view item) {
  const std::vector<std::string> items = Split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

// A number in a file's first words; false where there is none ("max").
bool Numbers(const std::string& path, size_t count, std::vector<double>* numbers) {
  const std::vector<std::string> lines = Lines(path);
  if (lines.empty()) return false;
  for (const std::string& word : Split(lines[0], ' ')) {
    double number = 0;
    if (!ParseNumber(word, &number)) return false;
    numbers->push_back(number);
  }
  return numbers->size() == count;
}

// Where a hierarchy is mounted, and which of its groups is seen there.
struct Mount {
  std::string point, group;
};

// mountinfo: "36 35 98:0 /group /point rw,noatime master:1 - cgroup2 source rw,cpu".
bool FindMount(const std::string& root, bool v2, Mount* mount) {
  for (const std::string& line : Lines(root + "/proc/self/mountinfo")) {
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    if (dash[1] != (v2 ? "cgroup2" : "cgroup")) continue;
    if (!v2 && !Contains(dash[3], "cpu")) continue;
    *mount = {root + words[4], words[3]};
    return true;
  }
  return false;
}

// The process's group in the hierarchy: "0::/a/b" for v2, "3:cpu,cpuacct:/a/b" for v1.
bool FindGroup(const std::string& root, bool v2, std::string* group) {
  for (const std::string& line : Lines(root + "/proc/self/cgroup")) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? !controllers.empty() : !Contains(controllers, "cpu")) continue;
    *group = line.substr(second + 1);
    return true;
  }
  return false;
}

double QuotaOf(const std::string& directory, bool v2) {
  std::vector<double> numbers;
  const bool limited = v2 ? Numbers(directory + "/cpu.max", 2, &numbers)
                          : Numbers(directory + "/cpu.cfs_quota_us", 1, &numbers) &&
                                Numbers(directory + "/cpu.cfs_period_us", 2, &numbers);
  if (!limited || numbers[0] <= 0 || numbers[1] <= 0) return 0;  // v1 says -1 for none
  return numbers[0] / numbers[1];
}

double Strictest(double a, double b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

double QuotaOfHierarchy(const std::string& root, bool v2) {
  Mount mount;
  std::string group;
  if (!FindMount(root, v2, &mount) || !FindGroup(root, v2, &group)) return 0;
  // In a container the mount may show the process's own group as its root, while the path is the
  // host's.
  if (mount.group != "/" && group.compare(0, mount.group.size(), mount.group) == 0)
    group.erase(0, mount.group.size());
  if (group.find("..") != std::string::npos) group.clear();  // outside what is mounted
  double quota = QuotaOf(mount.point, v2);
  for (size_t end = 0; end < group.size();) {
    end = std::min(group.find('/', end + 1), group.size());
    quota = Strictest(quota, QuotaOf(mount.point + "/" + group.substr(0, end), v2));
  }
  return quota;
}

}  // namespace

int UsableCpus::count() const {
  const int by_mask = std::max(1, static_cast<int>(cpus.size()));
  if (quota <= 0) return by_mask;
  return std::clamp(static_cast<int>(std::ceil(quota)), 1, by_mask);
}

double CgroupCpuQuota(const std::string& root) {
  return Strictest(QuotaOfHierarchy(root, true), QuotaOfHierarchy(root, false));
}

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
