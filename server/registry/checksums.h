// SHA256SUMS: what whoever made a version says of its files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/cancel.h"

namespace floe::server {

inline constexpr char kChecksumsFile[] = "SHA256SUMS";

// How many files have the sum that `directory`/SHA256SUMS, in the format of sha256sum(1), says; 0
// where there is no such file. `model` is the name of the model's file there, which alone may be a
// link out of the directory, as it may be without sums; when it is `alone`, lines that name other
// files are passed over.
// INVALID_ARGUMENT names the file that has not, or the line that cannot be read; CANCELLED once
// `cancel`, which may be null, is raised. Takes as long as reading the files does.
absl::StatusOr<int> CheckChecksums(const std::string& directory, const std::string& model,
                                   bool alone, const CancelToken* cancel);

}  // namespace floe::server
