#include "server/api/unfolding.h"

#include "model/import/unfolded_bytes.h"

namespace floe::server {
namespace {

constexpr int64_t kMostTimes = kUnfoldedMessage / 2;

}  // namespace

absl::Status CheckUnfolding(std::string_view bytes, const google::protobuf::Descriptor& type,
                            int64_t most) {
  if (static_cast<int64_t>(bytes.size()) <= most / kMostTimes) return absl::OkStatus();
  return UnfoldedBytes(bytes, type) <= most ? absl::OkStatus() : TooMuchUnfolded();
}

absl::Status TooMuchUnfolded() {
  return absl::ResourceExhaustedError(
      "the request's inputs unfold to more bytes than the server accepts in one message "
      "(--grpc_max_message_bytes)");
}

}  // namespace floe::server
