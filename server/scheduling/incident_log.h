// IncidentLog: what goes wrong with a version's requests, as a few lines of the log.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "server/scheduling/stats.h"

namespace floe::server {

// One line for each cause, at once when it first occurs and then at most every kEvery, with how
// often it occurred since the last line. Threading: one thread at a time.
class IncidentLog {
 public:
  static constexpr Duration kEvery = std::chrono::minutes(1);

  // The lines that are due, given all that happened so far (Scheduler::Counts): "12 requests
  // refused: the queue was full".
  std::vector<std::string> Lines(const SchedulerStats& stats, TimePoint now);

 private:
  static constexpr size_t kCauses = 5;
  struct Cause {
    uint64_t logged = 0;
    TimePoint next = TimePoint::min();
  };
  std::array<Cause, kCauses> causes_;
};

}  // namespace floe::server
