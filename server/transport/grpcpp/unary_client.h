// One call over a connection, bytes in and bytes out: what the daemon asks its own transport with.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/cancel.h"
#include "base/clock.h"

namespace floe::server {

// Calls `method` ("/package.Service/Method") over the connected socket `fd`, waits for the answer
// and closes the socket. The server's status, or UNAVAILABLE when the connection ends,
// DEADLINE_EXCEEDED when it is silent, CANCELLED once `cancel` is. Threading: any thread; blocks
// it.
absl::StatusOr<std::string> CallOnce(int fd, const std::string& method, const std::string& request,
                                     Duration timeout, CancelToken* cancel);

}  // namespace floe::server
