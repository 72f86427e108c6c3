#include "server/api/unfolding.h"

#include "model/import/unfolded_bytes.h"
#include "server/request/parsed_tensor.h"

namespace floe::server {
namespace {

constexpr int64_t kMostTimes = kUnfoldedMessage / 2;

}  // namespace

absl::Status CheckUnfolding(std::string_view bytes, const google::protobuf::Descriptor& type,
                            int64_t most) {
  if (static_cast<int64_t>(bytes.size()) <= most / kMostTimes) return absl::OkStatus();
  return UnfoldedBytes(bytes, type) <= most ? absl::OkStatus() : TooMuchUnfolded();
}

}  // namespace floe::server
