// What values are allowed beside the ranges of key_table.cc, whatever file or flag they come from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"

namespace floe {

struct IntRange {
  int64_t low, high;
  bool Has(int64_t value) const { return value >= low && value <= high; }
};

inline constexpr IntRange kVersionRange{0, std::numeric_limits<int64_t>::max()};
inline constexpr IntRange kLatestRange{1, 1'000'000};
inline constexpr int kMaxCpus = 8192;
inline constexpr int kMaxModels = 10'000;  // of one list

// Gives max_batch_size the last of allowed_batch_sizes when only those were given.
void FillBatching(bool max_batch_size_given, BatchingConfig* batching);

// Rules between the keys, a line each: "allowed_batch_sizes: ...".
std::vector<std::string> BatchingMistakes(const BatchingConfig& batching);

// "0-3,8" as 0, 1, 2, 3, 8; ascending, each once. INVALID_ARGUMENT names the part.
absl::StatusOr<std::vector<int>> ParseCpuSet(const std::string& text);
std::string CpuSetText(const std::vector<int>& cpus);  // the reverse, as short as can be

// Sorted, each once.
template <typename T>
void SortUnique(std::vector<T>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

}  // namespace floe
