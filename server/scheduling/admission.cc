// Whether a request is accepted, by its cost, the load and its deadline.
#include "server/scheduling/admission.h"

#include <algorithm>

namespace floe::server {
namespace {

// A request is refused when the time that is left is less than expected and one part in so many
// more. Under lasting overload a queue stays as long as it is allowed to be. At the very edge, all
// answers come a little too late for callers who count their way through the network.
constexpr int kLatenessMargin = 4;

}  // namespace

Duration ExpectedLatency(const Backlog& backlog, const Cost& cost) {
  const Duration own = std::max(cost.work, cost.run);
  const Duration most = std::max(own, backlog.running + 2 * backlog.ahead + own);
  const Duration batch = std::clamp(cost.usual_run, own, most);
  if (batch <= Duration::zero()) return Duration::zero();
  const auto batches = (backlog.ahead + own + batch - Duration(1)) / batch;
  const Duration wait = backlog.running / backlog.workers + (batches - 1) / backlog.workers * batch;
  return wait + wait / kLatenessMargin + batch;
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
