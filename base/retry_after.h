// What a refusal says of when to come again; transports have their own words for it.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "base/clock.h"

namespace floe {

// The same status, which carries the hint. Less than a millisecond counts as one.
absl::Status WithRetryAfter(absl::Status status, Duration wait);

// Whole milliseconds; nothing: it carries none.
std::optional<std::chrono::milliseconds> RetryAfter(const absl::Status& status);

// The same status of a request that is too large whenever it comes: trying again cannot help.
absl::Status AsTooLarge(absl::Status status);
bool IsTooLarge(const absl::Status& status);

}  // namespace floe
