// Bytes of a file -> a message of protobuf, in binary or text form, within the memory there is.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message.h>

#include <string_view>

#include "absl/status/statusor.h"
#include "base/memory_budget.h"

namespace floe {

constexpr int kMaxMessageDepth = 100;  // of nested messages

// Errors are returned: protobuf's own lines on stderr would let a hostile file fill the log.
void SilenceProtobuf();

// Text form holds no control bytes but white space; a binary message has them within its first
// fields.
bool LooksLikeText(std::string_view bytes);

// What reading the bytes as a `type` may take, paid for; of no budget where the thread has none.
absl::StatusOr<MemoryShare> TakeForParsing(std::string_view bytes, bool text,
                                           const google::protobuf::Descriptor& type);

// INVALID_ARGUMENT with line and column.
absl::Status ParseText(google::protobuf::io::ZeroCopyInputStream* stream,
                       google::protobuf::Message* message);

// Reads text or binary as LooksLikeText tells. INVALID_ARGUMENT with the place; nothing is printed.
absl::Status ParseMessage(std::string_view bytes, google::protobuf::Message* message);

// The same after paying; `memory` keeps what the message takes.
absl::Status ParsePaid(std::string_view bytes, google::protobuf::Message* message,
                       MemoryShare* memory);

}  // namespace floe
