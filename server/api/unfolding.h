// What a message of a few bytes becomes once protobuf has read it: two bytes on the wire may stand
// for an object of a hundred.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace floe::server {

// About the most memory that the message takes when it is read as a `type`, in bytes; INT64_MAX for
// bytes that cannot be walked (groups, bad lengths) or nest deeper than protobuf lets them.
int64_t UnfoldedBytes(std::string_view bytes, const google::protobuf::Descriptor& type);

// RESOURCE_EXHAUSTED, which names the flag, when that may be more than `most`. Free for messages
// that are far too small for it.
absl::Status CheckUnfolding(std::string_view bytes, const google::protobuf::Descriptor& type,
                            int64_t most);

// The same error, for whoever counts otherwise.
absl::Status TooMuchUnfolded();

}  // namespace floe::server
