// Which tensor of a checkpoint each variable and table of a graph is restored from.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace tensorflow {
class GraphDef;
}

namespace floe {

// As RestoreV2 takes it.
struct RestoredTensor {
  std::string name;
  std::string part;  // "": all of it; else as of TensorBundle::ReadPart
};

struct RestorePlan {
  std::map<std::string, RestoredTensor> variables;  // by SharedName
  struct Entries {
    RestoredTensor keys, values;
  };
  std::map<std::string, Entries> tables;  // by node of the graph
};

// Follows what the graph's saver would do: from RestoreV2 to what assigns a variable or fills a
// table, in the graph and in the functions it calls. `restore_op`: the saver's node (SaverDef);
// empty, or without any assignment below it: whatever the graph restores. RESOURCE_EXHAUSTED for
// functions that call each other without end.
absl::StatusOr<RestorePlan> PlanRestore(const tensorflow::GraphDef& graph,
                                        const std::string& restore_op);

}  // namespace floe
