#include "server/daemon/transport_watch.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads.h"

namespace floe::server {

Duration ProcessCpuTime() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TransportWatch::TransportWatch(Options options)
    : options_(std::move(options)),
      looked_(options_.clock->Now()),
      cpu_used_(options_.cpu_time()),
      worked_(looked_) {}

absl::Status TransportWatch::Start() {
  FLOE_ASSIGN_OR_RETURN(thread_, TrySpawnThread({"inside", 0, {}}, [this] { Run(); }));
  return absl::OkStatus();
}

void TransportWatch::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  cancel_.Cancel();
  if (thread_.joinable()) thread_.join();
}

void TransportWatch::Ask() {
  {
    MutexLock lock(mutex_);
    silent_since_ = std::min(silent_since_, options_.clock->Now());
  }
  const absl::Status status = options_.ask(5 * kStandstill, &cancel_);
  if (absl::IsDeadlineExceeded(status)) return;
  MutexLock lock(mutex_);
  silent_since_ = TimePoint::max();
}

absl::Status TransportWatch::Check() {
  const TimePoint now = options_.clock->Now();
  const Duration used = options_.cpu_time();
  if ((used - cpu_used_) * 100 > (now - looked_) * kBusyPercent) worked_ = now;
  cpu_used_ = used;
  looked_ = now;
  TimePoint silent_since;
  {
    MutexLock lock(mutex_);
    silent_since = silent_since_;
  }
  if (silent_since == TimePoint::max()) return absl::OkStatus();
  const Duration still = now - std::max(silent_since, worked_);
  if (still <= kStandstill) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the transport has not answered, and nothing was done, for ",
                   std::chrono::duration_cast<std::chrono::seconds>(still).count(), " s"));
}

void TransportWatch::Run() {
  mutex_.Lock();
  while (!stop_) {
    mutex_.Unlock();
    Ask();
    mutex_.Lock();
    if (!stop_) wake_.WaitUntil(mutex_, options_.clock->Now() + options_.interval);
  }
  mutex_.Unlock();
}

}  // namespace floe::server
