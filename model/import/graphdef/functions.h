// The functions of a GraphDef: imported once each, on demand.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/graph.h"
#include "model/import/graphdef/graphdef.h"

namespace tensorflow {
class FunctionDef;
class FunctionDefLibrary;
class NodeDef;
}  // namespace tensorflow

namespace floe {

class FunctionLibrary {
 public:
  // Both must outlive this; `library` is emptied of constants as functions are imported.
  // `variables` may be null.
  explicit FunctionLibrary(tensorflow::FunctionDefLibrary* library,
                           const VariableValues* variables = nullptr);

  // The value of a Const whose kVariableAttr names one, in the graph or a function; else null.
  const Tensor* VariableOf(const tensorflow::NodeDef& node) const;

  bool Has(const std::string& name) const { return functions_.count(name) != 0; }
  // A graph whose inputs are the arguments and whose outputs are the returned values.
  // INVALID_ARGUMENT for unknown names, recursion and calls nested too deeply.
  absl::StatusOr<std::shared_ptr<const Graph>> Import(const std::string& name);
  // Nodes of the imported graph that a call runs whether or not a result needs them.
  const std::vector<int>& Controls(const std::string& name) const {
    return functions_.at(name).controls;
  }
  // Which of a function's results has this name.
  absl::StatusOr<int> ResultNumber(const std::string& function, const std::string& result) const;

 private:
  struct Entry {
    tensorflow::FunctionDef* def = nullptr;
    std::shared_ptr<const Graph> graph;
    std::vector<int> controls;
    bool open = false;  // being imported now
  };
  std::map<std::string, Entry> functions_;
  const VariableValues* const variables_;
  int depth_ = 0;
};

// The graph without the effects that neither its outputs nor `controls` wait for.
std::shared_ptr<const Graph> WithoutIdleEffects(std::shared_ptr<const Graph> graph,
                                                const std::vector<int>& controls);

// Outputs of a node, as its op and attributes have it.
int CountOutputs(const tensorflow::NodeDef& node, const OpDef& op);

// Function bodies name outputs "node:argument:k". The number of output `argument`:0; 0 for ops that
// floe does not know. INVALID_ARGUMENT when the op has no such output argument.
absl::StatusOr<int> OutputArgument(const tensorflow::NodeDef& node, const std::string& argument);

}  // namespace floe
