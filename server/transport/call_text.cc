// Texts of the refusals, in one place.
#include "server/transport/call_text.h"

#include "absl/strings/str_cat.h"
#include "base/quoted.h"

namespace floe::server {
namespace {

// A text that the caller chose, for messages and the log.
std::string Kept(std::string_view value) {
  constexpr size_t kMostBytes = 128;
  return Printable(value.substr(0, kMostBytes), 3 * kMostBytes);
}

}  // namespace

void AddMetadata(std::string_view key, std::string_view value, CallHead* head) {
  if (key.starts_with("floe-")) {
    head->metadata.emplace_back(key, value);
  } else if (key == kRequestIdKey) {
    head->request_id = Kept(value);
  } else if (key == "traceparent") {
    head->traceparent = Kept(value);
  }
}

absl::Status CheckSize(size_t size, int64_t max_bytes) {
  if (size <= static_cast<size_t>(max_bytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the request has ", size, " bytes and the server accepts ", max_bytes,
                   "; raise --grpc_max_message_bytes there (and, for large replies, the client's "
                   "grpc.max_receive_message_length)"));
}

absl::Status ShuttingDownError() { return absl::UnavailableError("the server is shutting down"); }

absl::Status NoMessageError() {
  return absl::InvalidArgumentError("the call ended without a request message");
}

absl::Status NotReadError() {
  return absl::ResourceExhaustedError("the caller does not read what the stream brings");
}

absl::Status NoCompressionError() {
  return absl::UnimplementedError(
      "the request is compressed with gzip, which this server does not accept; send it "
      "uncompressed, or set server.enable_compression: true there");
}

}  // namespace floe::server
