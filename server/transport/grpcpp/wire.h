// Between grpc++'s types and those of server/api.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"
#include "server/api/rpc.h"

namespace floe::server {

// Messages are escaped where they are no text, and cut where they would not fit into the trailers'
// usual limit of 8 KiB.
grpc::Status ToGrpc(const absl::Status& status);

// The trailers, and RetryAfter as the one that gRPC's clients obey when they retry (gRFC A6).
void AddTrailers(const absl::Status& status, const Trailers& trailers,
                 grpc::ServerContextBase* context);

// All but the cancel token. `path` outlives the call.
CallHead MakeCallHead(std::string_view path, const grpc::CallbackServerContext& context);

struct MessageLimits {
  int64_t max_bytes = 0;  // of a message, unpacked
  bool unpack = false;    // what is packed with gzip, which no message of protobuf can be taken for
};

// A message that was received, contiguous. gRPC 1.51 crashes where the last reference to memory of
// a ResourceQuota ends outside of its own functions, as that of a Slice does: the buffer holds it.
struct Received {
  grpc::ByteBuffer buffer;
  grpc::Slice slice;  // goes first
};

// The buffer's own slice when it has a single one, a copy otherwise. RESOURCE_EXHAUSTED beyond the
// limits. Clears the buffer.
absl::Status TakeMessage(grpc::ByteBuffer* buffer, const MessageLimits& limits, Received* received);

inline std::string_view BytesOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// The string's bytes without a copy (small ones are copied).
grpc::ByteBuffer Pack(std::string&& message);

}  // namespace floe::server
