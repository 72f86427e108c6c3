// Suggestions for a misspelt name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace floe {

// The up to `count` candidates nearest to `name`, nearest first, by Levenshtein distance without
// regard to case (a candidate that contains `name` counts as near). Ties keep the candidates'
// order.
std::vector<std::string> NearestNames(const std::string& name,
                                      const std::vector<std::string>& candidates, size_t count = 3);

// "; nearest: 'x'", the candidate nearest to `name` where one is like it: at most half of its
// characters differ, or it contains `name`. Otherwise "".
std::string NearestHint(const std::string& name, const std::vector<std::string>& candidates);

inline constexpr size_t kMostListedNames = 20;

// "'a', 'b', 'c'": the names quoted (base/quoted.h) and joined; "(none)" when empty. Past
// kMostListedNames the list ends with "and 7 more".
std::string QuotedList(const std::vector<std::string>& names);

}  // namespace floe
