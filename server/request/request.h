// Request: an inference and who asks for it, as a call hands it to a model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/cancel.h"
#include "base/clock.h"
#include "server/request/inference.h"

namespace floe::server {

// Priorities: 1 is served first, kPriorities last. A step is worth so much waiting that no request
// starves (kPriorityAging of the queue).
inline constexpr int kPriorities = 3;
inline constexpr int kDefaultPriority = 2;

// Where a request's time went.
struct Timings {
  Duration queue = Duration::zero();  // until its run began
  Duration run = Duration::zero();
  int64_t batch_rows = 0;   // of the run; 0: it never ran
  bool more_waits = false;  // for the thread that answers: what takes time is better done elsewhere
};

// The call makes it and gives it away; from then on it is const. Executors see no more of it than
// `asked`.
struct Request {
  std::shared_ptr<const Inference> asked;  // keeps its message alive, and who is answered
  TimePoint deadline = TimePoint::max();
  // Of its call, from when on the model's default timeout counts; max(): as it is submitted.
  TimePoint arrived = TimePoint::max();
  std::shared_ptr<CancelToken> cancel;  // may be null
  int priority = kDefaultPriority;      // larger and smaller values count as the nearest
  uint64_t principal = 0;               // the same for one caller's requests; 0: not known
  // Called exactly once, without a lock held: on a worker's thread, on that which ends what did not
  // run, inside Submit, or inside the scheduler's Stop. Only where it throws what CatchOutOfMemory
  // catches, as the memory of a large reply may, is it called once more, with that as the status.
  std::function<void(const absl::StatusOr<Outputs>&, const Timings&)> complete;
};

}  // namespace floe::server
