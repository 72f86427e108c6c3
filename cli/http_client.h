// One HTTP/1.1 request to a server, with or without TLS.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc.h"

namespace floe::cli {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// POST of JSON to `path`; blocks until the answer. The target's timeout is that of each wait for
// the server. UNAVAILABLE where no server answers, DEADLINE_EXCEEDED, INVALID_ARGUMENT for an
// address that is not HOST:PORT or unix:PATH; whatever the server answers is OK.
absl::StatusOr<HttpAnswer> PostJson(const Target& target, const std::string& path,
                                    const std::string& body);

}  // namespace floe::cli
