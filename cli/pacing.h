// When the calls of an open loop are sent: a schedule that no slow answer delays.
#pragma once

#include <cstdint>
#include <random>

#include "base/clock.h"

namespace floe::cli {

// The times at which calls are to be sent, one of `of` parts of a stream of `rate` calls a second.
// Constant arrivals are 1/rate apart, and part i takes each of-th of them, from the i-th on.
// Otherwise they come at random, as those of many independent callers do (Poisson): the parts are
// independent then, and the same in each run.
class Arrivals {
 public:
  Arrivals(double rate, bool constant, int part = 0, int of = 1);

  // The next one, after the start. They never go back.
  Duration Next();

 private:
  const double rate_;
  const bool constant_;
  const int part_, of_;
  int64_t made_ = 0;
  double seconds_ = 0;  // of the last one, where they are random
  std::mt19937_64 random_;
};

// What Pace works with.
class Sender {
 public:
  virtual ~Sender() = default;
  // Returns at `due`, or at once when that is past.
  virtual void WaitUntil(TimePoint due) = 0;
  // Sends the call that was to be sent at `due`, which may be past: its latency counts from `due`.
  // False: it cannot be sent before the end.
  virtual bool Send(TimePoint due) = 0;
};

struct Paced {
  int64_t sent = 0;
  int64_t unsent = 0;  // due before the end, and not sent
};

// Sends the arrivals from `start` until before `end`, each when it is due. When sending takes
// longer than it should, what became due meanwhile follows at once, with the times that it should
// have had. So a server that stalls delays the answers of all calls due in that time, as it does
// for callers who do not know of each other, and no latency is left out ("coordinated omission").
Paced Pace(Arrivals& arrivals, TimePoint start, TimePoint end, Sender& sender);

}  // namespace floe::cli
