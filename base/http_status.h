// What a status of HTTP means where a gRPC code is wanted.
#pragma once

#include "absl/status/status.h"

namespace floe {

// Of an error: 400 and above.
absl::StatusCode CodeOfHttp(int status);

}  // namespace floe
