// The key under which a checkpoint's index has one slice of a partitioned tensor: its name and
// ranges in an encoding whose bytes sort as the values do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace floe {

// One dimension's range; length -1: all of it.
struct SliceRange {
  int64_t start = 0, length = -1;
  friend bool operator==(const SliceRange&, const SliceRange&) = default;
};

std::string SliceKey(const std::string& tensor, const std::vector<SliceRange>& ranges);

}  // namespace floe
