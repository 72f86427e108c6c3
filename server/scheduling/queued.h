// Queued: a request in a scheduler's hands, from Submit until it is answered.
#pragma once

#include <algorithm>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "server/executor/binding.h"
#include "server/request/request.h"

namespace floe::server {

// What became of a request.
enum class Outcome : uint8_t {
  kAnswered,
  kFailed,
  kRefusedFull,
  kRefusedLate,
  kRefusedStopped,
  kExpired,
  kCancelled
};
inline constexpr size_t kOutcomes = 7;

struct Bucket;

// What the scheduler writes is here, and nowhere else.
struct Queued : Bound {
  explicit Queued(Request from)
      : Bound{from.asked.get(), {}}, call(std::move(from)), deadline(call.deadline) {}
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  const Request call;  // as its call made it
  TimePoint deadline;  // that of the call, or by the default timeout
  // In the queue while `bucket` is set.
  Bucket* bucket = nullptr;
  boost::intrusive::list_member_hook<> arrival_hook, bucket_hook;
  boost::intrusive::set_member_hook<> deadline_hook;
  TimePoint enqueued;
  TimePoint flush_at;  // with a deadline: when it waits for no more rows
  uint64_t hash = 0;
  int64_t queued_rows = 0;           // as the queue's bound counts them
  uint64_t quarantine = 0;           // not 0: shares runs only with requests of this principal
  Duration work = Duration::zero();  // expected use of a worker, in full batches
  Duration run = Duration::zero();   // expected, of a run of its own
  Queued* whole = nullptr;           // the large request of which this is a part (Join)
  bool awaits_turn = false;          // a large request none of whose parts was queued yet
  bool cancelled = false;            // its caller left after it was queued
  Outcome outcome = Outcome::kAnswered;
  absl::Status status;  // why there is no answer
  Timings timings;

  int level() const { return std::min(std::max(call.priority, 1), kPriorities) - 1; }
};

}  // namespace floe::server
