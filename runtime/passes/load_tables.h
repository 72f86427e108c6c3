// Lookup tables are filled once, when a model is loaded, and are constants from then on.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "model/graph.h"

namespace floe {

struct TableSources {
  // Nodes to run, with all they need: initialisers, or groups of them (NoOp with control inputs).
  // Empty: every initialiser of a table that `roots` use.
  std::vector<std::string> init_nodes;
  std::string asset_directory;  // the model's; empty: there is none
  std::vector<int> roots;       // nodes that the signatures fetch
};

// Replaces each HashTable node by a constant handle of a filled table; nodes of one shared_name and
// container get the same. Initialisers that were run become NoOp. Subgraphs are changed too.
// Tables that the roots do not use stay empty. Errors name node and reason: FAILED_PRECONDITION for
// a table that nothing fills, or that initialisers fill differently. NOT_FOUND for a file.
// INVALID_ARGUMENT for a missing node, a malformed file, or a table that depends on inputs;
// RESOURCE_EXHAUSTED past TableObject::kMaxBytes.
absl::Status LoadTables(Graph* graph, const TableSources& sources, const KernelOptions& options);

// The bytes of a file that a graph names. A relative name is one in `directory`. An absolute one is
// mostly a trace of the machine the model comes from, and a relative one may be. Where there is no
// such file beneath `directory`, its last part is looked for in assets/, and then beside the model.
// TensorFlow puts such files in assets/ when it exports a model. Nothing outside `directory` is
// opened, whatever the name says: INVALID_ARGUMENT for one that leads out of it.
absl::StatusOr<std::string> ReadAsset(const std::string& directory, const std::string& name);

}  // namespace floe
