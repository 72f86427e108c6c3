// Protobuf's text format, with every mistake by file and line.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "absl/status/status.h"

namespace floe {

// Where in the text each field stands.
using TextPlaces = google::protobuf::TextFormat::ParseInfoTree;

// Whether mistakes may show what the text holds.
enum class TextValues { kShown, kSecret };

// INVALID_ARGUMENT has one line per mistake: "file:line: what is wrong"; a field that the message
// does not have comes with the nearest one that it has. `places` may be null. Without mistakes
// `*message` is the text's and nothing else.
absl::Status ParseTextProto(const std::string& text, const std::string& file,
                            google::protobuf::Message* message, TextPlaces* places,
                            TextValues values = TextValues::kShown);

// "file:line" of a field, of a repeated one's first element; "file" when the text or the message
// does not have it.
std::string PlaceOf(const std::string& file, const TextPlaces& places,
                    const google::protobuf::Message& message, const std::string& field);

}  // namespace floe
