// What a batcher did so far, and whether its work goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "server/batching/bucket_book.h"

namespace floe::server {

// How the work goes on, for the health probe.
struct BatcherProgress {
  size_t queued = 0;
  int running = 0;
  TimePoint waiting_since =
      TimePoint::max();  // start of the oldest unfinished work, queued or running
  TimePoint last_finished = TimePoint::min();
  Duration slowest = Duration::zero();  // of all runs so far, per as many rows as a batch may have
  double largest = 1;                   // running: the most rows, in batches
};
// No run finished for max(10 s, 20 x the slowest run) although work was there all that time. A run
// of more rows than a batch may take as many times longer.
bool IsStuck(const BatcherProgress& progress, TimePoint now);

// What happened to the requests so far.
struct BatcherStats {
  uint64_t answered = 0;         // with outputs
  uint64_t failed = 0;           // by the model, or as Admit said
  uint64_t refused_full = 0;     // RESOURCE_EXHAUSTED
  uint64_t refused_late = 0;     // DEADLINE_EXCEEDED without having waited
  uint64_t refused_stopped = 0;  // UNAVAILABLE
  uint64_t expired = 0;          // DEADLINE_EXCEEDED in the queue or in a run
  uint64_t cancelled = 0;
  uint64_t inline_runs = 0;  // on the thread that brought the request
  uint64_t reruns = 0;       // batches that failed and were run once more one by one
  size_t queued = 0;
  size_t queued_bytes = 0;
  BatchCounts batches;                                     // of all kinds of requests
  std::vector<std::pair<std::string, BatchCounts>> kinds;  // by signature and inner shape
};
// For a log: "12 answered, 3 refused late; 4 batches of 3.0 requests, 3.5 rows; closed: 3 idle, 1
// full". What did not happen is left out; empty when nothing was asked.
std::string Summary(const BatcherStats& stats);

}  // namespace floe::server
