// Paths of models, as configurations and flags name them.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace floe {

// A path of this machine's file system: "file:///srv/m" is "/srv/m", and a relative one starts at
// `directory` ("" = it stays as it is). The empty path stays empty. INVALID_ARGUMENT, which says
// what to do instead, for other URLs and for "~", which only shells know.
absl::StatusOr<std::string> LocalPath(const std::string& path, const std::string& directory);

}  // namespace floe
