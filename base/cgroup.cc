#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

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

// Where a hierarchy is mounted, and which of its groups is seen there.
struct Mount {
  std::string point, group;
};

// mountinfo: "36 35 98:0 /group /point rw,noatime master:1 - cgroup2 source rw,cpu".
bool FindMount(const std::string& root, const std::string& controller, bool v2, Mount* mount) {
  for (const std::string& line : Lines(root + "/proc/self/mountinfo")) {
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    if (dash[1] != (v2 ? "cgroup2" : "cgroup")) continue;
    if (!v2 && !Contains(dash[3], controller)) continue;
    *mount = {root + words[4], words[3]};
    return true;
  }
  return false;
}

// The process's group in the hierarchy: "0::/a/b" for v2, "3:cpu,cpuacct:/a/b" for v1.
bool FindGroup(const std::string& root, const std::string& controller, bool v2,
               std::string* group) {
  for (const std::string& line : Lines(root + "/proc/self/cgroup")) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? !controllers.empty() : !Contains(controllers, controller)) continue;
    *group = line.substr(second + 1);
    return true;
  }
  return false;
}

double Least(double a, double b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

double OfHierarchy(const std::string& root, const std::string& controller, bool v2,
                   GroupLimit limit) {
  Mount mount;
  std::string group;
  if (!FindMount(root, controller, v2, &mount) || !FindGroup(root, controller, v2, &group))
    return 0;
  // In a container the mount may show the process's own group as its root, while the path is the
  // host's.
  if (mount.group != "/" && group.compare(0, mount.group.size(), mount.group) == 0)
    group.erase(0, mount.group.size());
  if (group.find("..") != std::string::npos) group.clear();  // outside what is mounted
  double least = limit(mount.point, v2);
  for (size_t end = 0; end < group.size();) {
    end = std::min(group.find('/', end + 1), group.size());
    least = Least(least, limit(mount.point + "/" + group.substr(0, end), v2));
  }
  return least;
}

}  // namespace

bool ReadNumbers(const std::string& path, size_t count, std::vector<double>* numbers) {
  const std::vector<std::string> lines = Lines(path);
  if (lines.empty()) return false;
  for (const std::string& word : Split(lines[0], ' ')) {
    double number = 0;
    if (!ParseNumber(word, &number)) return false;
    numbers->push_back(number);
  }
  return numbers->size() == count;
}

double LeastGroupLimit(const std::string& root, const std::string& controller, GroupLimit limit) {
  return Least(OfHierarchy(root, controller, true, limit),
               OfHierarchy(root, controller, false, limit));
}

}  // namespace floe
