// Limits that the control groups of this process set.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace floe {

// What a group's directory says of the limit, by version 2's files or version 1's; 0: none.
using GroupLimit = double (*)(const std::string& directory, bool v2);

// The least limit of the groups named by `root`/proc/self/cgroup and those above them, as far as
// `root`/proc/self/mountinfo shows them; 0: none. `root` is "" but in tests, `controller` what
// version 1 calls the hierarchy ("cpu"). What cannot be read counts as no limit.
double LeastGroupLimit(const std::string& root, const std::string& controller, GroupLimit limit);

// Appends the numbers of a file's first line. False where it has a word that is none ("max"), or
// where there are then other than `count`.
bool ReadNumbers(const std::string& path, size_t count, std::vector<double>* numbers);

}  // namespace floe
