// Bounds what requests become once protobuf has read them (model/import/unfolded_bytes.h).
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace floe::server {

// RESOURCE_EXHAUSTED, which names the flag, when that may be more than `most`. Free for messages
// that are far too small for it.
absl::Status CheckUnfolding(std::string_view bytes, const google::protobuf::Descriptor& type,
                            int64_t most);

}  // namespace floe::server
