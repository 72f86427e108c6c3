// One line for each cause, at most every minute.
#include "server/scheduling/incident_log.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace floe::server {

std::vector<std::string> IncidentLog::Lines(const SchedulerStats& stats, TimePoint now) {
  const std::array<std::pair<uint64_t, const char*>, kCauses> seen = {{
      {stats[Outcome::kRefusedFull], "requests refused: the queue was full"},
      {stats[Outcome::kRefusedLate], "requests refused: their deadlines were too near"},
      {stats[Outcome::kExpired], "requests expired"},
      {stats.reruns, "batches failed and were run again in halves"},
      {stats.by_code[static_cast<size_t>(absl::StatusCode::kInternal)],
       "requests failed with INTERNAL, the last one: "},
  }};
  std::vector<std::string> lines;
  for (size_t i = 0; i < kCauses; ++i) {
    Cause& cause = causes_[i];
    const auto& [count, what] = seen[i];
    if (count == cause.logged || now < cause.next) continue;
    lines.push_back(absl::StrCat(count - cause.logged, " ", what,
                                 i + 1 == kCauses ? stats.last_internal_error : ""));
    cause = {count, now + kEvery};
  }
  return lines;
}

}  // namespace floe::server
