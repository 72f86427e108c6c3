// Which errors of a load are worth another try.
#pragma once

#include "absl/status/status.h"

namespace floe::server {

// Whether trying again, with the same files, may end differently: not for what is wrong with the
// model itself.
bool MayRetry(const absl::Status& error);

// Marks an error that MayRetry would take for a passing one.
absl::Status Final(absl::Status error);

}  // namespace floe::server
