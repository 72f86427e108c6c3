// The rule that keeps a label from leading nowhere.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace floe::server {

using VersionLabels = std::map<std::string, int64_t>;

// Whether labels may change from `before` to `after`: a label that is new or moves needs a version
// that is available; with `allow_unavailable` a new one does not. FAILED_PRECONDITION names the
// model, label and version.
absl::Status CheckLabels(const std::string& model, const VersionLabels& before,
                         const VersionLabels& after,
                         const std::function<bool(int64_t version)>& available,
                         bool allow_unavailable);

}  // namespace floe::server
