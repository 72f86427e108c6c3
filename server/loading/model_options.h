// What a model's configuration says to the importer and to the compiler.
#pragma once

#include <optional>

#include "base/file_identity.h"
#include "config/config.h"
#include "model/import/import.h"
#include "runtime/model.h"

namespace floe::server {

// INVALID_ARGUMENT: a placeholder's default does not fit its dtype.
absl::StatusOr<ImportOptions> ImportOptionsOf(
    const ModelConfig& config, const std::optional<FileIdentity>& identity = std::nullopt);

// `options` with what the model has of its own. Routes that they have already stay.
CompileOptions CompileOptionsOf(const ModelConfig& config, CompileOptions options = {});

}  // namespace floe::server
