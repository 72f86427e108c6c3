// The functions of a GraphDef: imported once each, on demand.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "model/graph.h"

namespace tensorflow {
class FunctionDef;
class FunctionDefLibrary;
}  // namespace tensorflow

namespace floe {

class FunctionLibrary {
 public:
  // `library` must outlive this and is emptied of constants as functions are imported.
  explicit FunctionLibrary(tensorflow::FunctionDefLibrary* library);

  bool Has(const std::string& name) const { return functions_.count(name) != 0; }
  // A graph whose inputs are the arguments and whose outputs are the returned values.
  // INVALID_ARGUMENT for unknown names, recursion and calls nested too deeply.
  absl::StatusOr<std::shared_ptr<const Graph>> Import(const std::string& name);

 private:
  struct Entry {
    tensorflow::FunctionDef* def = nullptr;
    std::shared_ptr<const Graph> graph;
    bool open = false;  // being imported now
  };
  std::map<std::string, Entry> functions_;
  int depth_ = 0;
  int64_t nodes_ = 0;
};

bool IsCall(const std::string& op);     // PartitionedCall and its kin
bool IsControl(const std::string& op);  // functional If, Case, While

// Function bodies name outputs "node:argument:k". The number of output `argument`:0 of an op;
// UNIMPLEMENTED when floe does not know the op's output arguments.
absl::StatusOr<int> OutputArgument(const std::string& op, const std::string& argument);

}  // namespace floe
