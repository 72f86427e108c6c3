// Whole models of Keras 2 and 3 -> graph.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/import/import.h"

namespace floe {

// Reads a .keras archive, a whole-model .h5, or a weights file with the model's configuration
// beside it (NAME.json, model.json or config.json). The folder that a .keras archive unpacks to
// counts as one. Errors as ImportFile; a layer that cannot be served is UNIMPLEMENTED and named.
absl::StatusOr<ImportedModel> ImportKeras(const std::string& path, const ImportOptions& options);

// The same of a whole file in memory, which is copied where the model keeps parts of it.
absl::StatusOr<ImportedModel> ImportKerasBytes(std::string_view bytes,
                                               const ImportOptions& options);

}  // namespace floe
