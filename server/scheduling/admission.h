// Admission: whether a request may queue, by what is expected. Pure functions.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace floe::server {

// What stands before a request.
struct Backlog {
  Duration ahead = Duration::zero();    // work that goes before it
  Duration queued = Duration::zero();   // all work that waits
  Duration running = Duration::zero();  // what is left of runs under way
  int workers = 1;
  bool empty = true;  // nothing waits
  bool idle = true;   // nothing waits, and a slot is free
};

// What a request is expected to take.
struct Cost {
  Duration work = Duration::zero();       // its part of full batches
  Duration run = Duration::zero();        // a run of its own
  Duration usual_run = Duration::zero();  // what runs of its profile took of late
};

enum class Admission : uint8_t { kAccept, kLate, kFull };

// How long until the request is answered. What runs and waits counts as if all of it ran in full
// batches. The request's own batch is expected to take what such batches took of late. That is at
// least its own run, and at most that with all that may arrive while it waits.
Duration ExpectedLatency(const Backlog& backlog, const Cost& cost);

// kLate: the deadline, `time_left` away, would pass. Never where the backlog is idle.
// kFull: the work that waits would take longer than `max_queued_time`. Never where nothing waits.
Admission Admit(const Backlog& backlog, const Cost& cost, Duration time_left,
                Duration max_queued_time);

}  // namespace floe::server
