// Messages of gRPC as REST replies have them.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace floe::server {

// An object with the fields' own names, also where they have their defaults; maps, messages and
// members of a oneof only where they are set. Integers are numbers, however large, which is how
// KServe's and Triton's clients read them; protobuf's own JSON makes strings of those of 64 bits.
// Bytes are base64, enums their names. Strings are UTF-8.
void AppendProtoJson(const google::protobuf::Message& message, std::string* out);

}  // namespace floe::server
