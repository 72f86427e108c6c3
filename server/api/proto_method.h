// Unary methods over protobuf classes: for the RPCs that are rare.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/import/unfolded_bytes.h"
#include "server/api/rpc.h"
#include "server/request/request.h"

namespace floe::server {

// What a message of these RPCs may take once it is read: they hold names and configurations.
inline constexpr int64_t kMostProtoBytes = int64_t{256} << 20;

// RESOURCE_EXHAUSTED, which names the flag, when a message may take more than `most` once protobuf
// has read it. Free for those that are far too small for it.
inline absl::Status CheckUnfolding(std::string_view bytes, const google::protobuf::Descriptor& type,
                                   int64_t most) {
  const bool small = static_cast<int64_t>(bytes.size()) <= most / (kUnfoldedMessage / 2);
  return small || UnfoldedBytes(bytes, type) <= most ? absl::OkStatus() : TooMuchUnfolded();
}

// INVALID_ARGUMENT when the bytes are no such message, RESOURCE_EXHAUSTED when it is too large.
template <typename Proto>
absl::Status ParseMessage(std::string_view bytes, Proto* proto) {
  FLOE_RETURN_IF_ERROR(CheckUnfolding(bytes, *Proto::descriptor(), kMostProtoBytes));
  if (bytes.size() <= INT32_MAX &&
      proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the request is not a valid ", Proto::descriptor()->full_name()));
}

// `handle` answers at once, on the transport's thread.
template <typename Request, typename Response>
using ProtoHandle = std::function<absl::Status(const CallHead&, const Request&, Response*)>;
template <typename Request, typename Response>
UnaryFunction ProtoFunction(ProtoHandle<Request, Response> handle) {
  return [handle = std::move(handle)](const CallHead& head, const Message& message,
                                      const std::shared_ptr<Responder>& responder) {
    Request request;
    Response response;
    absl::Status status = ParseMessage(message.bytes, &request);
    if (status.ok()) status = handle(head, request, &response);
    if (status.ok()) responder->Write(response.SerializeAsString());
    responder->Finish(status);
  };
}

// Requests to these methods are small.
inline constexpr int64_t kMostRequestBytes = int64_t{1} << 20;

template <typename Request, typename Response>
Method ProtoMethod(MethodRole role, ProtoHandle<Request, Response> handle) {
  return UnaryMethod(role, ProtoFunction<Request, Response>(std::move(handle)), kMostRequestBytes);
}

}  // namespace floe::server
