// One call to an address, bytes in and bytes out: what the daemon probes itself with.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/cancel.h"
#include "base/clock.h"

namespace floe::server {

// Connects anew, calls `method` ("/package.Service/Method"), waits for the answer and disconnects.
// `address`: "127.0.0.1:8500" or "unix:/path". The server's status, or UNAVAILABLE when it cannot
// be reached, DEADLINE_EXCEEDED when it is silent, CANCELLED once `cancel` is. Threading: any
// thread; blocks it.
absl::StatusOr<std::string> CallOnce(const std::string& address, const std::string& method,
                                     const std::string& request, Duration timeout,
                                     CancelToken* cancel);

}  // namespace floe::server
