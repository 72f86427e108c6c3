// Which format a path leads to, told by content and not by name: what ImportFile goes by.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace floe {

enum class Format : uint8_t {
  kGraphDef,    // or nothing that is known: reading it as a GraphDef says what it is
  kSavedModel,  // a directory with saved_model.pb or .pbtxt, or that file
  kKeras,       // a zip archive with a config.json (.keras), or a directory it was unpacked to
  kHdf5,        // of Keras or anyone else
};

struct FoundFormat {
  Format format = Format::kGraphDef;
  std::string file;  // the one to read first: of a directory, the file in it; else the path
};

// Looks at the first and last bytes of a file, or at the names in a directory. A path that cannot
// be opened is taken for a GraphDef, whose reader says why. INVALID_ARGUMENT: a directory without a
// model, with what to do.
absl::StatusOr<FoundFormat> DetectFormat(const std::string& path);

}  // namespace floe
