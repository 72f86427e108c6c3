#include "server/api/followed.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"

namespace floe::server {
namespace {

// Whether the caller wants to know where the time went.
absl::StatusOr<bool> WantsTiming(const CallHead& call) {
  const std::string* const wish = call.FindMetadata(kTimingKey);
  if (wish == nullptr || *wish == "0") return false;
  if (*wish == "1") return true;
  return absl::InvalidArgumentError(
      absl::StrCat("metadata ", kTimingKey, " is ", Quoted(*wish), "; use 1 or 0"));
}

std::string MicrosText(Duration time) {
  return absl::StrCat(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

// "1.5" of "1500" microseconds.
double MillisOf(const std::string& micros) {
  int64_t number = 0;
  return absl::SimpleAtoi(micros, &number) ? static_cast<double>(number) / 1000 : 0;
}

}  // namespace

std::string NewRequestId() {
  static const uint32_t process = std::random_device()();
  static std::atomic<uint64_t> count{0};
  return absl::StrCat(absl::Hex(process, absl::kZeroPad8), "-", ++count);
}

void AddToReply(const Trailers& trailers, HttpReply* reply) {
  std::string timing;  // in milliseconds
  for (const auto& [name, value] : trailers) {
    reply->fields.emplace_back(name, value);
    if (name == kQueueTimeKey || name == kRunTimeKey)
      absl::StrAppend(&timing, timing.empty() ? "" : ", ", name == kQueueTimeKey ? "queue" : "run",
                      ";dur=", MillisOf(value));
  }
  if (!timing.empty()) reply->fields.emplace_back("Server-Timing", std::move(timing));
}

absl::StatusOr<std::unique_ptr<Followed>> FollowCall(const CallHead& head, bool logged) {
  const bool may_be_by_caller =
      !head.request_id.empty() || !head.traceparent.empty() || !head.metadata.empty();
  if (!may_be_by_caller && !logged) return nullptr;
  FLOE_ASSIGN_OR_RETURN(const bool timing, WantsTiming(head));
  std::optional<TraceContext> trace = ParseTraceparent(head.traceparent);
  const bool by_caller = !head.request_id.empty() || trace.has_value() || timing;
  if (!by_caller && !logged) return nullptr;
  auto followed = std::make_unique<Followed>();
  followed->by_caller = by_caller;
  followed->timing = timing;
  followed->trace = std::move(trace);
  followed->path = head.path;
  followed->peer = head.peer;
  return followed;
}

void AddTraceAndTimes(const Followed& followed, Trailers* trailers) {
  if (followed.trace.has_value())
    trailers->emplace_back(kTraceparentKey, Traceparent(*followed.trace, NewSpanId()));
  if (!followed.timing || !followed.timings.has_value()) return;
  trailers->emplace_back(kQueueTimeKey, MicrosText(followed.timings->queue));
  trailers->emplace_back(kRunTimeKey, MicrosText(followed.timings->run));
}

}  // namespace floe::server
