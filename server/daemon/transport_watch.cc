// Compares the time of the last answer, and of the last work, with the time now.
#include "server/daemon/transport_watch.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"

namespace floe::server {

Duration ProcessCpuTime() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TransportWatch::TransportWatch(Options options)
    : options_(std::move(options)),
      checked_(options_.clock->Now()),
      answered_(checked_),
      worked_(checked_),
      cpu_used_(options_.cpu_time()) {}

absl::Status TransportWatch::Check() {
  const TimePoint now = options_.clock->Now();
  const Duration used = options_.cpu_time();
  if ((used - cpu_used_) * 100 > (now - checked_) * kBusyPercent) worked_ = now;
  cpu_used_ = used;
  checked_ = now;
  if (options_.answered()) answered_ = now;
  const Duration still = now - std::max(answered_, worked_);
  if (still <= kStandstill) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the transport has not answered, and nothing was done, for ",
                   std::chrono::duration_cast<std::chrono::seconds>(still).count(), " s"));
}

}  // namespace floe::server
