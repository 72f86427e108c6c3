// LargeRequests: starts requests that are computed in parts when it is their turn, and ends them.
#pragma once

#include "server/scheduling/join.h"
#include "server/scheduling/state.h"

namespace floe::server {

// Threading: any thread.
class LargeRequests {
 public:
  // `submit` queues a part. The state outlives the requests.
  LargeRequests(SchedulerState& state, Join::Submit submit)
      : state_(state), submit_(std::move(submit)) {}

  // Starts the large requests of the queue that have room. Each that ends makes room for others,
  // and has them started.
  void StartWaiting();

 private:
  void Start(Queued* whole);
  void End(Queued* whole, const absl::Status& status, Outputs outputs);

  SchedulerState& state_;
  const Join::Submit submit_;
  // A thread starts requests. What ends at once meanwhile leaves the next to it, so that long
  // chains of failures do not nest.
  bool starting_ ABSL_GUARDED_BY(state_.mutex) = false;
};

}  // namespace floe::server
