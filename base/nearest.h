// Suggestions for a misspelt name.
#pragma once

#include <string>
#include <vector>

namespace floe {

// The up to `count` candidates nearest to `name`, nearest first, by Levenshtein distance without
// regard to case (a candidate that contains `name` counts as near). Ties keep the candidates'
// order.
std::vector<std::string> NearestNames(const std::string& name,
                                      const std::vector<std::string>& candidates, size_t count = 3);

// "'a', 'b', 'c'": the names quoted and joined; "(none)" when empty.
std::string QuotedList(const std::vector<std::string>& names);

}  // namespace floe
