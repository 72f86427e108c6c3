// A graph with variables and the checkpoint they lie in -> a graph without variables: what loading
// a SavedModel and `floectl freeze` share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/import/checkpoint/tensor_bundle.h"
#include "model/import/savedmodel/meta_graph.h"
#include "model/import/savedmodel/object_graph.h"
#include "model/tensor.h"

namespace tensorflow {
class GraphDef;
}

namespace floe {

struct FreezeRequest {
  std::vector<FileSignature> signatures;      // to be served; the others' nodes go
  std::vector<std::string> init_nodes;        // what they do for tables is kept
  std::map<std::string, std::string> assets;  // node -> what it gives as the file's name
  std::string restore_op;                     // as of PlanRestore
  std::map<std::string, ObjectPath> objects;  // as of CapturedVariables
  bool keep_tables_unused = true;             // false: initialisers go where the graph has no table
};

struct FrozenGraph {
  std::vector<SignatureDef> signatures;          // those that can be served
  std::map<std::string, absl::Status> left_out;  // the others, with the reason
  std::map<std::string, Tensor> variables;       // by the constants' kVariableAttr
  std::vector<std::string> initialisers;         // nodes that fill tables
};

// Opens the checkpoint when a variable needs it.
using OpenCheckpoint = std::function<absl::StatusOr<TensorBundle*>()>;

// Rewrites `graph` so that nothing is left that the signatures do not need. Constants that were
// variables have no value: it is in `variables`. A signature that assigns, or needs a variable that
// the checkpoint lacks, is left out. Errors: no signature is left; a damaged checkpoint;
// UNAVAILABLE for files of it that are missing or too short.
absl::StatusOr<FrozenGraph> FreezeGraph(FreezeRequest request, const OpenCheckpoint& checkpoint,
                                        tensorflow::GraphDef* graph);

}  // namespace floe
