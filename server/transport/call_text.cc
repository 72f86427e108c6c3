// Texts of the refusals, in one place.
#include "server/transport/call_text.h"

#include "absl/strings/str_cat.h"

namespace floe::server {

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
