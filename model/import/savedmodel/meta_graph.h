// What a MetaGraphDef says beside its graph: signatures, what to run before the first request,
// files that belong to it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/graph.h"

namespace tensorflow {
class MetaGraphDef;
class SavedModel;
}  // namespace tensorflow

namespace floe {

// A signature as the file has it; tensor names as "node" or "node:1". `problem`: why it cannot be
// served, where the file tells.
struct FileSignature {
  SignatureDef def;
  absl::Status problem;
};

// Those of a meta graph by name, without the ones that loaders keep for themselves. Where there are
// none, the functions that OfferFunctions finds, whose calls are added to the graph. A ragged
// tensor is as many tensors as RaggedParts names.
std::vector<FileSignature> ReadSignatures(tensorflow::MetaGraphDef* meta);

// Nodes that are run once after variables were restored; empty: none.
std::vector<std::string> InitNodes(const tensorflow::MetaGraphDef& meta);

// Node -> the file's name beneath assets/.
std::map<std::string, std::string> AssetFiles(const tensorflow::MetaGraphDef& meta);

// The prefix of a SavedModel's checkpoint: variables/variables, or variables where only that is
// there, beside saved_model.pb.
std::string CheckpointOf(const std::string& directory);

// The meta graph whose tags are exactly those; where none are asked for, the one of tag "serve",
// or the only one. INVALID_ARGUMENT with the tags there are.
absl::StatusOr<tensorflow::MetaGraphDef*> ChooseMetaGraph(const std::vector<std::string>& tags,
                                                          tensorflow::SavedModel* model);

}  // namespace floe
