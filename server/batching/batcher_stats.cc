#include "server/batching/batcher_stats.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace floe::server {
namespace {

using Count = std::pair<const char*, uint64_t>;

// "3 idle, 1 full"
std::string Listed(const std::vector<Count>& counts) {
  std::vector<std::string> words;
  for (const auto& [name, count] : counts)
    if (count > 0) words.push_back(absl::StrCat(count, " ", name));
  return absl::StrJoin(words, ", ");
}

double Mean(uint64_t sum, uint64_t count) {
  return static_cast<double>(sum) / static_cast<double>(count);
}

}  // namespace

bool IsStuck(const BatcherProgress& progress, TimePoint now) {
  if (progress.waiting_since == TimePoint::max()) return false;
  const auto patience =
      std::chrono::duration_cast<Duration>(20 * progress.largest * progress.slowest);
  const Duration limit = std::max<Duration>(std::chrono::seconds(10), patience);
  return now - std::max(progress.waiting_since, progress.last_finished) > limit;
}

std::string Summary(const BatcherStats& stats) {
  std::string text = Listed({{"answered", stats.answered},
                             {"failed", stats.failed},
                             {"refused for a full queue", stats.refused_full},
                             {"refused late", stats.refused_late},
                             {"refused at the end", stats.refused_stopped},
                             {"expired", stats.expired},
                             {"cancelled", stats.cancelled}});
  const BatchCounts& batches = stats.batches;
  if (batches.batches == 0) return text;
  absl::StrAppendFormat(&text, "; %d batches of %.1f requests, %.1f rows", batches.batches,
                        Mean(batches.requests, batches.batches),
                        Mean(batches.rows, batches.batches));
  const std::string how = Listed({{"padding rows", batches.padded_rows},
                                  {"inline", stats.inline_runs},
                                  {"run one by one after a failure", stats.reruns}});
  if (!how.empty()) absl::StrAppend(&text, ", ", how);
  std::vector<Count> closed;
  for (int close = 0; close < kBatchCloses; ++close)
    closed.emplace_back(BatchCloseName(static_cast<BatchClose>(close)), batches.closed[close]);
  return absl::StrCat(text, "; closed: ", Listed(closed));
}

}  // namespace floe::server
