// Bytes of a file -> a message of protobuf, in binary or text form, within the memory there is.
#pragma once

#include <google/protobuf/message.h>

#include <string_view>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"

namespace floe {

// Text form holds no control bytes but white space; a binary message has them within its first
// fields.
bool LooksLikeText(std::string_view bytes);

// What reading the bytes as a `type` may take, paid for; of no budget where the thread has none.
absl::StatusOr<MemoryShare> TakeForParsing(std::string_view bytes, bool text,
                                           const google::protobuf::Descriptor& type);

// Reads text or binary as LooksLikeText tells. INVALID_ARGUMENT with the place; nothing is printed.
absl::Status ParseMessage(std::string_view bytes, google::protobuf::Message* message);

// The same after paying; `memory` keeps what the message takes.
absl::Status ParsePaid(std::string_view bytes, google::protobuf::Message* message,
                       MemoryShare* memory);

}  // namespace floe
