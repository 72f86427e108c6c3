// gRPC's own formats over HTTP/2: timeouts, status messages, binary metadata, compression.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace floe::server {

// A message's prefix: whether it is compressed, and its size in four bytes.
inline constexpr size_t kMessagePrefix = 5;

// Where the largest field of a protobuf message begins, in the messages it lies in, as far as the
// first bytes of the message tell; 0 where no field is most of it. `whole` is the message's size.
// A guess: bytes of a field may look like a message.
size_t PayloadOffset(std::string_view first, size_t whole);

// "250m" is 250 ms; nothing when it is malformed. Longer than a century is for ever:
// Duration::max().
std::optional<Duration> ParseTimeout(std::string_view text);

// A status message as grpc-message has it: printable ASCII, everything else as %XX.
std::string PercentEncoded(std::string_view text);

// Values of keys that end with "-bin". Padding may be left out; nothing when it is malformed.
std::string Base64(std::string_view bytes);
std::optional<std::string> FromBase64(std::string_view text);

enum class Packing : uint8_t { kNone, kGzip, kDeflate, kUnknown };
// By the name in grpc-encoding; "" and "identity": none.
Packing PackingOf(std::string_view name);
std::string_view NameOf(Packing packing);
// Whether a list as in grpc-accept-encoding names it.
bool Accepts(std::string_view list, Packing packing);

// Packs a message; "" where that saves nothing.
std::string Pack(std::string_view message, Packing packing);

}  // namespace floe::server
