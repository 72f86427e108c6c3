// Chooses versions by policy and labels, and errors that are worth a retry.
#include "server/registry/version_policy.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/cord.h"

namespace floe::server {
namespace {

constexpr char kFinalUrl[] = "floe/final";

}  // namespace

std::vector<int64_t> WantedVersions(const VersionPolicy& policy, const std::vector<int64_t>& found,
                                    const std::set<int64_t>& failing,
                                    const std::set<int64_t>& labelled) {
  switch (policy.kind) {
    case VersionPolicy::Kind::kAll:
      return found;
    case VersionPolicy::Kind::kSpecific: {
      std::vector<int64_t> wanted = policy.specific;
      std::sort(wanted.begin(), wanted.end(), std::greater<>());
      wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
      return wanted;
    }
    case VersionPolicy::Kind::kLatest:
      break;
  }
  std::vector<int64_t> wanted;
  int64_t healthy = 0;
  for (const int64_t version : found) {
    const bool latest = healthy < policy.latest;
    if (!latest && labelled.empty()) break;
    if (latest || labelled.count(version) != 0) wanted.push_back(version);
    if (latest && failing.count(version) == 0) ++healthy;
  }
  return wanted;
}

std::set<int64_t> LabelledVersions(const ModelConfig& config) {
  std::set<int64_t> versions;
  for (const auto& [label, version] : config.version_labels) versions.insert(version);
  return versions;
}

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
