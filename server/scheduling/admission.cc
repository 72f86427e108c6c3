// Whether a request is accepted, by its cost, the load and its deadline.
#include "server/scheduling/admission.h"

#include <algorithm>

#include "server/request/tuning.h"

namespace floe::server {

Duration ExpectedLatency(const Backlog& backlog, const Cost& cost) {
  const Duration own = std::max(cost.work, cost.run);
  const Duration most = std::max(own, backlog.running + 2 * backlog.ahead + own);
  const Duration batch = std::clamp(cost.usual_run, own, most);
  if (batch <= Duration::zero()) return Duration::zero();
  const auto batches = (backlog.ahead + own + batch - Duration(1)) / batch;
  const Duration wait = backlog.running / backlog.workers + (batches - 1) / backlog.workers * batch;
  return wait + wait / tuning::kLatenessMargin + batch;
}

Admission Admit(const Backlog& backlog, const Cost& cost, Duration time_left,
                Duration max_queued_time) {
  if (!backlog.idle && ExpectedLatency(backlog, cost) > time_left) return Admission::kLate;
  if (!backlog.empty && max_queued_time != Duration::max() &&
      (backlog.queued + cost.work) / backlog.workers > max_queued_time)
    return Admission::kFull;
  return Admission::kAccept;
}

}  // namespace floe::server
