// Errors that another try may pass, by their codes.
#include "server/loading/load_errors.h"

#include "absl/strings/cord.h"

namespace floe::server {
namespace {

constexpr char kFinalUrl[] = "floe/final";

}  // namespace

bool MayRetry(const absl::Status& error) {
  if (error.GetPayload(kFinalUrl).has_value()) return false;
  switch (error.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kNotFound:  // a file that went between the scan and the load
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

absl::Status Final(absl::Status error) {
  error.SetPayload(kFinalUrl, absl::Cord("1"));
  return error;
}

}  // namespace floe::server
