// What is reported of a model: which versions requests find, their states, and why there is none.
#pragma once

#include <vector>

#include "server/registry/model_state.h"

namespace floe::server {

// A version is available, or nothing more will happen by itself but for retries and changes of
// files.
bool IsSettled(const ModelState& model);
// No version is available, and none will be before files or the configuration change.
bool HasFailed(const ModelState& model);
std::vector<const Servable*> Published(const ModelState& model);  // newest first, each version once
// Of the active configuration, newest version first, then those that ended; none where none has
// been found.
std::vector<VersionStatus> Statuses(const ModelState& model);
// Why there is no version, for one who asks for the model; OK while that may still change.
absl::Status LastError(const ModelState& model);

}  // namespace floe::server
