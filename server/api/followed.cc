#include "server/api/followed.h"

#include <chrono>

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

}  // namespace

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
