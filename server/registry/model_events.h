// What happened to a model. Unknown tickets and ids are ignored.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/registry/model_state.h"

namespace floe::server {

// A scan ended. True: something is different.
bool NoteScanned(ModelState* model, int64_t ticket,
                 const absl::StatusOr<std::vector<FoundVersion>>& found, TimePoint now,
                 const LifecycleTimes& times);
// A scan does not take place yet: Reconcile asks for it again.
void PutOffScan(ModelState* model, int64_t ticket);
// A load ended. `identity`: of the file, where it is known.
void NoteLoaded(ModelState* model, ServableId id, const absl::Status& status, TimePoint now,
                const LifecycleTimes& times, const std::optional<FileIdentity>& identity);
// `status`: why not all of it ended.
void NoteUnloaded(ModelState* model, ServableId id, const absl::Status& status);
// Memory came back: what was refused for lack of it is tried at once, also what was given up.
void RetryRefused(ModelState* model);

}  // namespace floe::server
