// What a scheduler did so far, and whether its work goes on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "server/scheduling/queue.h"
#include "server/scheduling/request_counts.h"
#include "server/scheduling/time_bounds.h"

namespace floe::server {

// How the work goes on, for the health probe.
struct SchedulerProgress {
  struct Run {
    int slot = 0;
    TimePoint started;
    double batches = 1;     // its rows, in batches; at least 1
    int worker = -1;        // whose thread it is on; -1: a caller's
    bool stuck = false;     // when this was asked
    bool reported = false;  // by Scheduler::NewlyStuck
    std::string what;       // of those that are stuck: signature, shapes, rows and step
  };
  size_t queued = 0;
  TimePoint waiting_since = TimePoint::max();  // when the oldest queued request was due to run
  std::vector<Run> runs;                       // under way
  int workers = 1;                             // that can be
  TimePoint last_finished = TimePoint::min();
  Duration slowest = Duration::zero();  // of good runs, for a full batch; old ones fade
};
// Under way for longer than max(kStuckAfter, kStuckTimes x the slowest run). A run of more rows
// than a batch may take as many times longer.
bool IsStuck(const SchedulerProgress& progress, const SchedulerProgress::Run& run, TimePoint now);
// No run finished for that long although requests were due all that time, or every worker is in a
// stuck run.
bool IsStuck(const SchedulerProgress& progress, TimePoint now);

// How batches were formed.
struct BatchCounts {
  uint64_t batches = 0;
  uint64_t requests = 0;  // each part of a large one counts
  uint64_t rows = 0;
  uint64_t padded_rows = 0;                     // computed beyond those
  std::array<uint64_t, kBatchCloses> closed{};  // by BatchClose

  void Add(const BatchCounts& other);
};

// Of the requests with one cost profile: one signature and one set of non-batch dimensions.
struct ProfileStats {
  std::string name;
  BatchCounts batches;
  std::string why_not_batchable;  // names the node; empty: batchable
  int64_t max_rows = 0;           // of one run; 0: not known
  double slower = 0;              // what runs took of late, by the estimate; 0: not known
};

// What is known of a signature from the load on.
struct SignatureEstimate {
  std::string name;
  int64_t max_rows = 0;           // chosen for a batch; 0: the configuration's
  double row_micros = 0;          // a run of one row
  std::string why_not_batchable;  // empty: batchable
};

struct TimeStats {
  uint64_t count = 0;  // of the last one to two minutes
  Duration p50 = Duration::zero(), p99 = Duration::zero();
};

struct RunCounts {
  uint64_t inline_runs = 0;  // on the thread that brought the request
  uint64_t reruns = 0;       // batches that failed and were run again in halves
  uint64_t stuck_runs = 0;   // that NewlyStuck named
};

// Runs by their rows, of the first kMost numbers of rows that occur; without memory of its own.
class RunsByRows {
 public:
  static constexpr size_t kMost = 32;
  struct Runs {
    int64_t rows = 0;
    uint64_t count = 0;
    double seconds = 0;
  };
  void Add(int64_t rows, double seconds);
  std::vector<Runs> Read() const;  // by rows

 private:
  size_t used_ = 0;
  std::array<Runs, kMost> runs_ = {};
};

// The runs for one signature since the start: how long requests waited for them and how long they
// took, in seconds, and how many rows they had.
inline constexpr double kRowsBounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
struct SignatureWork {
  const Signature* signature = nullptr;
  std::string name;
  Histogram queue_wait{kWaitBounds}, run{kTimeBounds}, batch_rows{kRowsBounds};
  RunsByRows by_rows;
};

// Of all signatures that had a run. Threading: the caller locks.
class WorkCounts {
 public:
  // Where that of the signature is; where there is no memory for a new one, another's.
  size_t Find(const Inference& asked);
  SignatureWork& operator[](size_t place) { return all_[place]; }
  std::vector<SignatureWork> Read() const;  // by name

 private:
  std::vector<SignatureWork> all_{1};  // the first is where there is no memory
};

struct SchedulerStats : RunCounts {
  std::array<uint64_t, kOutcomes> outcomes{};    // by Outcome
  std::array<uint64_t, kStatusCodes> by_code{};  // by absl::StatusCode, of all `requests`
  std::string last_internal_error;               // "" when there was none
  BatchCounts batches;                           // of all profiles
  std::vector<ProfileStats> profiles;
  std::vector<SignatureEstimate> estimates;
  size_t queued_bytes = 0;
  int64_t queued_rows = 0;
  Duration oldest_wait = Duration::zero();
  TimeStats queue_wait, run;
  std::vector<SignatureWork> work;
  std::vector<RequestCount> requests;
  SchedulerProgress progress;

  uint64_t& operator[](Outcome outcome) { return outcomes[static_cast<size_t>(outcome)]; }
  uint64_t operator[](Outcome outcome) const { return outcomes[static_cast<size_t>(outcome)]; }
};

// For a log: "4 batches of 3.0 requests, 3.5 rows; closed: 3 idle, 1 full".
std::string Summary(const BatchCounts& counts);
// For a log: "12 answered, 3 refused late; 4 batches of 3.0 requests, 3.5 rows; closed: 3 idle, 1
// full". What did not happen is left out; empty when nothing was asked.
std::string Summary(const SchedulerStats& stats);

}  // namespace floe::server
