// Chooses versions by policy and labels.
#include "server/registry/version_policy.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace floe::server {

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

}  // namespace floe::server
