// Executor: what runs the batches of one served version.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "server/request/request.h"

namespace floe::server {

// When a run is to be given up between two of its steps.
struct RunLimits {
  TimePoint deadline = TimePoint::max();
  const CancelToken* cancel = nullptr;  // null: none
  const Clock* clock = &Clock::Steady();
};

// Runs batches on one of a fixed number of slots (a slot is what one run occupies: an ExecContext).
// Threading: Bind, Expect, RunRows and Describe from any thread; Run and Outputs by one thread at
// a time per slot.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual int slots() const = 0;
  // Settles what the request runs on, or says why it cannot run (INVALID_ARGUMENT).
  virtual absl::Status Bind(Request* request) = 0;
  // What a run of so many rows with the request's key takes, by the estimate at load; zero:
  // not known.
  virtual Duration Expect(const Request& request, int64_t rows) const {
    (void)request, (void)rows;
    return Duration::zero();
  }
  // How many rows are computed in a run of so many with the request's key.
  virtual int64_t RunRows(const Request& request, int64_t rows) const {
    (void)request;
    return rows;
  }
  // The request's signature and non-batch dimensions, for statistics.
  virtual std::string Describe(const Request& request) const {
    (void)request;
    return "";
  }
  // What the slot's run is doing: "node 'y' (MatMul)"; empty: nothing, or not known. Any thread,
  // while the run's requests are alive.
  virtual std::string Doing(int slot) const {
    (void)slot;
    return "";
  }
  // Runs all requests at once. Not OK: no outputs; CANCELLED or DEADLINE_EXCEEDED only by the
  // limits.
  virtual absl::Status Run(int slot, absl::Span<Request* const> batch, const RunLimits& limits) = 0;
  // Those of the request whose rows begin at `first_row` of what the last OK Run(slot) computed.
  // Valid until the slot's next Run.
  virtual void Outputs(int slot, const Request& request, int64_t first_row, TensorViews* views) = 0;
  // Gives back memory that the slot keeps for runs like its last ones; it will be idle.
  virtual void Trim(int slot) { (void)slot; }
};

}  // namespace floe::server
