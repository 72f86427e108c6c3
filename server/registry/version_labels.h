// The rule that keeps a label from leading nowhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace floe::server {

using VersionLabels = std::map<std::string, int64_t>;

// What becomes of versions when labels change.
struct VersionFate {
  std::function<bool(int64_t version)> available;  // it will be
  std::function<bool(int64_t version)> dropped;    // it is, and will not be: the change takes it
};

// Whether labels may change from `before` to `after`. A label that is new or moves needs a version
// that is available, and one that stays a version that is not dropped. With `allow_unavailable`
// only one that moves does. FAILED_PRECONDITION names the model, label and version.
absl::Status CheckLabels(const std::string& model, const VersionLabels& before,
                         const VersionLabels& after, const VersionFate& fate,
                         bool allow_unavailable);

}  // namespace floe::server
