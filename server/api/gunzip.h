// Packing, and unpacking with a bound: a few bytes may stand for many.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace floe::server {

// Whether the bytes begin as those of gzip do.
bool IsGzip(std::string_view bytes);

// Of gzip, or of zlib ("deflate"). RESOURCE_EXHAUSTED beyond `max_bytes`, of which no more are
// unpacked; INVALID_ARGUMENT when the bytes are damaged or cut short.
absl::StatusOr<std::string> Gunzip(std::string_view packed, int64_t max_bytes);

// The bytes packed, fast rather than well, as gzip or as zlib; "": that would make them larger.
std::string Deflated(std::string_view bytes, bool gzip);

}  // namespace floe::server
