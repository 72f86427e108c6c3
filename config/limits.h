// What values are allowed, whatever file or flag they come from.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/config.h"

namespace floe {

struct IntRange {
  int64_t low, high;
};

inline constexpr IntRange kPortRange{0, 65535};
inline constexpr IntRange kMessageBytesRange{1024, std::numeric_limits<int32_t>::max()};
inline constexpr IntRange kDrainSecondsRange{0, 3600};
inline constexpr IntRange kConnectionsRange{0, 10'000'000};
inline constexpr IntRange kCallsRange{0, 10'000'000};
inline constexpr IntRange kConnectionSecondsRange{0, 1'000'000};
inline constexpr IntRange kWorkersRange{1, 1024};
inline constexpr IntRange kIntraOpThreadsRange{1, 256};
inline constexpr IntRange kParallelismRange{0, 256};
inline constexpr IntRange kWeightRange{1, 1000};
inline constexpr IntRange kInlineBelowRange{0, 1'000'000};
inline constexpr IntRange kVersionRange{0, std::numeric_limits<int64_t>::max()};
inline constexpr IntRange kLatestRange{1, 1'000'000};
inline constexpr IntRange kMaxBatchSizeRange{1, 65536};
inline constexpr IntRange kBatchTimeoutRange{0, 60'000'000};
inline constexpr IntRange kMaxEnqueuedBatchesRange{0, 1'000'000};
inline constexpr IntRange kMaxEnqueuedMicrosRange{0, int64_t{86'400} * 1'000'000};
inline constexpr IntRange kBytesRange{0, int64_t{1} << 50};
inline constexpr IntRange kPollSecondsRange{0, 86'400};
inline constexpr IntRange kLoadRetriesRange{0, 1'000'000};
inline constexpr IntRange kRetryMicrosRange{0, int64_t{86'400} * 1'000'000};
inline constexpr IntRange kLoadThreadsRange{0, 1024};
inline constexpr IntRange kLoadSecondsRange{1, 86'400};
inline constexpr IntRange kRunSecondsRange{0, 86'400};
inline constexpr IntRange kTimeoutMicrosRange{0, int64_t{86'400} * 1'000'000};
inline constexpr IntRange kWarmupIterationsRange{1, 10'000};
inline constexpr int kMaxCpus = 8192;
inline constexpr int kMaxModels = 10'000;  // of one list

// Gives max_batch_size the last of allowed_batch_sizes when only those were given.
void FillBatching(bool max_batch_size_given, BatchingConfig* batching);

// Rules between the keys, a line each: "allowed_batch_sizes: ...".
std::vector<std::string> BatchingMistakes(const BatchingConfig& batching);

// "0-3,8" as 0, 1, 2, 3, 8; ascending, each once. INVALID_ARGUMENT names the part.
absl::StatusOr<std::vector<int>> ParseCpuSet(const std::string& text);
std::string CpuSetText(const std::vector<int>& cpus);  // the reverse, as short as can be

// "1048576", "512MiB", "2GiB" (KiB, MiB, GiB, TiB; K, M, G, T mean the same). INVALID_ARGUMENT
// otherwise or outside kBytesRange.
absl::StatusOr<int64_t> ParseBytes(const std::string& text);

// "90%", or bytes as above. MemoryLimitText is the reverse.
absl::StatusOr<MemoryLimit> ParseMemoryLimit(const std::string& text);
std::string MemoryLimitText(const MemoryLimit& limit);

// By ReplyFormat: "typed", "content"; by LogFormat: "text", "json"; by FullStatus:
// "resource_exhausted", "unavailable"; by TrialLoad:
// "always", "updates", "never"; by ConfigRpcs: "local", "true", "false".
const std::vector<std::string>& ReplyFormatNames();
const std::vector<std::string>& LogFormatNames();
const std::vector<std::string>& FullStatusNames();
const std::vector<std::string>& TrialLoadNames();
const std::vector<std::string>& ConfigRpcsNames();

}  // namespace floe
