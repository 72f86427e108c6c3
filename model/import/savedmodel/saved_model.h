// SavedModel -> graph with its signatures.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "model/import/import.h"

namespace floe {

// `file`: the path of a saved_model.pb or .pbtxt; variables/ and assets/ lie beside it. Variables
// are mapped from the checkpoint's shards. Errors as of ImportFile; a signature that cannot be
// served is left out as long as another is there.
absl::StatusOr<ImportedModel> ImportSavedModel(const std::string& file,
                                               const ImportOptions& options);

// The same of a file's bytes, with `directory` for what lies beside it.
absl::StatusOr<ImportedModel> ImportSavedModelBytes(std::string_view bytes,
                                                    const std::string& directory,
                                                    const ImportOptions& options);

}  // namespace floe
