// `floectl freeze`: a graph with its variables -> one GraphDef that TensorFlow and floe load.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/graph.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {

struct Frozen {
  tensorflow::GraphDef graph;
  SignatureDef signature;                 // which tensors its keys are
  std::vector<std::string> initialisers;  // nodes to run first, where the graph has tables
};

// `path`: of a SavedModel's directory or file. `tags` as of ImportOptions; `signature` empty:
// serving_default, or the only one. NOT_FOUND lists the signatures there are.
absl::StatusOr<Frozen> FreezeSavedModel(const std::string& path,
                                        const std::vector<std::string>& tags,
                                        const std::string& signature);

// `file`: a GraphDef or a MetaGraphDef (.meta), binary or text; `checkpoint`: the prefix of its
// files; `outputs`: tensors to keep.
absl::StatusOr<Frozen> FreezeCheckpoint(const std::string& file, const std::string& checkpoint,
                                        const std::vector<std::string>& outputs);

}  // namespace floe
