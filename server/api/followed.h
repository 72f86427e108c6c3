// What is kept of an inference that somebody follows: its caller, or the access log.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/api/access_log.h"
#include "server/api/http.h"
#include "server/api/rpc.h"
#include "server/api/trace_context.h"

namespace floe::server {

struct Followed {
  bool by_caller = false;  // who sent an id, a trace or a wish for timing
  bool timing = false;
  std::optional<TraceContext> trace;
  std::string peer, path;
  size_t request_bytes = 0, reply_bytes = 0;
  std::optional<Timings> timings;  // once its run has ended
};

// Null where nobody follows the call: neither its caller, nor a log where `logged`.
// INVALID_ARGUMENT: the wish for timing is none.
absl::StatusOr<std::unique_ptr<Followed>> FollowCall(const CallHead& head, bool logged);

// "5f2c81aa-42": names requests where callers sent no id.
std::string NewRequestId();

// As fields of a reply, and as Server-Timing, which browsers show.
void AddToReply(const Trailers& trailers, HttpReply* reply);

// What the caller asked for besides the id.
void AddTraceAndTimes(const Followed& followed, Trailers* trailers);

}  // namespace floe::server
