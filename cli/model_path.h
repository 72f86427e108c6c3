// Which file a command's model is, found as a server finds it.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/statusor.h"

namespace floe::cli {

// Of the argument, for --help.
inline constexpr char kModelHelp[] =
    "The model: a file, a directory with one, a SavedModel's directory, or a directory of numbered "
    "versions, of which the newest counts";

// The file, or the SavedModel's directory, that `path` leads to. `path` may be all that a server's
// base_path may be; of versions it is the newest with a model file. `notes` gets a line that names
// the version, and one for each newer version without a model. What is no directory, or a directory
// in which nothing is found, is returned as it is: whoever reads it says what it is.
// INVALID_ARGUMENT: the directory, or each version, holds several models or none.
absl::StatusOr<std::string> FindModelFile(const std::string& path, std::ostream& notes);

}  // namespace floe::cli
