// GraphBuilder: writes a graph node by node, with the types of values known as it grows, for
// importers whose files have no graph of ops. graph_ops.h has functions over it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe::build {

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

// The first error is kept and what follows is skipped: callers write expressions and look at
// status() once. Values after an error are of unknown rank. Threading: one thread.
class GraphBuilder {
 public:
  // Ops by TensorFlow's names. Nodes are called SCOPE/OP, numbered where that is taken.
  ValueRef Op(const std::string& op, const std::vector<ValueRef>& inputs,
              const Attributes& attrs = {});
  std::vector<ValueRef> Outputs(const std::string& op, const std::vector<ValueRef>& inputs,
                                int outputs, const Attributes& attrs = {});
  // A node that is ready, with its types. One without a name gets its op's, as above; a name that
  // is taken is numbered.
  std::vector<ValueRef> Raw(Node node, std::vector<TensorType> types);
  // The same tensor, or the same few bytes, twice is one node.
  ValueRef Const(const Tensor& tensor);

  const TensorType& type(ValueRef v) const;
  DType dtype(ValueRef v) const { return type(v).dtype; }
  const SymShape& shape(ValueRef v) const { return type(v).shape; }
  // What a caller knows of a shape better than inference.
  void Refine(ValueRef v, const SymShape& shape);

  void set_scope(const std::string& scope) { scope_ = scope; }
  const std::string& scope() const { return scope_; }

  void Fail(const absl::Status& status) { status_.Update(status); }
  void Fail(const std::string& message) { Fail(absl::InvalidArgumentError(message)); }
  // Puts `prefix` before the error, where there is one.
  void AnnotateError(const std::string& prefix);
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

  Graph& graph() { return graph_; }

 private:
  std::string InScope(const std::string& op) const {
    return scope_.empty() ? op : scope_ + "/" + op;
  }
  std::string UniqueName(const std::string& wanted);
  ValueInfo InfoOf(ValueRef v) const;

  Graph graph_;
  std::vector<std::vector<TensorType>> types_;  // by node and output
  std::map<std::string, int> names_;            // taken -> next number to try
  std::map<std::string, ValueRef> consts_;      // by type and content, or place in memory
  std::string scope_;
  absl::Status status_;
};

}  // namespace floe::build
