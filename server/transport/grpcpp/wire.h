// Between grpc++'s types and those of server/api.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"
#include "server/api/rpc.h"

namespace floe::server {

// Messages are cut where they would not fit into the trailers' usual limit of 8 KiB.
grpc::Status ToGrpc(const absl::Status& status);

// RetryAfter as the trailer that gRPC's clients obey when they retry (gRFC A6).
void AddRetryHint(const absl::Status& status, grpc::ServerContextBase* context);

// Metadata, deadline and caller; no cancel token.
CallInfo MakeCallInfo(const std::string& path, const std::string& peer,
                      const grpc::CallbackServerContext& context);

// One contiguous slice: the buffer's own when it has a single one, a copy otherwise.
// RESOURCE_EXHAUSTED beyond `max_bytes`. Clears the buffer.
absl::Status TakeSlice(grpc::ByteBuffer* buffer, int64_t max_bytes, grpc::Slice* slice);

inline std::string_view BytesOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// The string's bytes without a copy (small ones are copied).
grpc::ByteBuffer Pack(std::string&& message);

}  // namespace floe::server
