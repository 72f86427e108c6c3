// What a message of a few bytes becomes once protobuf has read it: two bytes on the wire may stand
// for an object of a hundred.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string_view>

namespace floe {

// The most that a message of no fields takes, in bytes; on the wire it has two.
inline constexpr int64_t kUnfoldedMessage = 192;

// About the most memory that the message takes when it is read as a `type`, in bytes. INT64_MAX for
// bytes that cannot be walked (groups, bad lengths) or nest deeper than protobuf lets them.
int64_t UnfoldedBytes(std::string_view bytes, const google::protobuf::Descriptor& type);

// The same of a message in text form, of any type.
int64_t UnfoldedTextBytes(std::string_view text);

}  // namespace floe
