// What all transports say alike: refusals and error texts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/api/rpc.h"

namespace floe::server {

// Of a status's message, which is sent escaped: three times as many. They must fit into the
// trailers' usual limit of 8 KiB.
inline constexpr size_t kMostStatusBytes = 2048;

// RESOURCE_EXHAUSTED for a request of more than `max_bytes`.
absl::Status CheckSize(size_t size, int64_t max_bytes);

absl::Status ShuttingDownError();
absl::Status NoMessageError();
absl::Status NotReadError();        // of a stream whose caller does not read
absl::Status NoCompressionError();  // of a request that is compressed where that is off

}  // namespace floe::server
