#include "cli/pacing.h"

namespace floe::cli {

Arrivals::Arrivals(double rate, bool constant, int part, int of)
    : rate_(rate), constant_(constant), part_(part), of_(of), random_(20240101 + part) {}

Duration Arrivals::Next() {
  if (constant_) {
    // From the number, lest the errors of sums grow.
    seconds_ = static_cast<double>(made_++ * of_ + part_) / rate_;
  } else {
    seconds_ += std::exponential_distribution<double>(rate_ / of_)(random_);
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_));
}

Paced Pace(Arrivals& arrivals, TimePoint start, TimePoint end, Sender& sender) {
  Paced paced;
  for (TimePoint due = start + arrivals.Next(); due < end; due = start + arrivals.Next()) {
    if (paced.unsent == 0) sender.WaitUntil(due);
    if (paced.unsent == 0 && sender.Send(due)) {
      ++paced.sent;
    } else {
      ++paced.unsent;
    }
  }
  return paced;
}

}  // namespace floe::cli
