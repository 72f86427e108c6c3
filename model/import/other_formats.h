// Files that are often taken for frozen graphs.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace floe {

// INVALID_ARGUMENT saying what the file is and how to come by a frozen graph, where its first bytes
// tell. Known are a SavedModel, a Git LFS pointer, Keras, TensorFlow Lite, an archive, a web page.
absl::Status CheckNoOtherFormat(std::string_view bytes);

// What is said of a file of a checkpoint.
absl::Status PartOfCheckpoint();

// The same for a MetaGraphDef (the .meta file of a checkpoint), which only parsing tells.
absl::Status CheckNoMetaGraph(std::string_view bytes);

// By the first two fields, the version of its schema and a meta graph; the first 64 bytes will do.
bool LooksLikeSavedModel(std::string_view bytes);

}  // namespace floe
