// GraphBuilder: writes a graph op by op, with the types of values known as it grows.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/graph.h"
#include "model/op_def.h"

namespace floe::keras {

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

// A dim of a shape that is wanted: a number, or dim `axis` of a value, settled by a run.
struct WantedDim {
  WantedDim(int64_t n) : size(n) {}  // NOLINT: dims read as numbers
  WantedDim(ValueRef v, int a) : from(v), axis(a) {}
  bool fixed() const { return from.node < 0; }
  int64_t size = -1;
  ValueRef from;
  int axis = 0;
};

// The first error is kept and what follows is skipped: callers write expressions and look at
// status() once. Values after an error are of unknown rank. Threading: one thread.
class GraphBuilder {
 public:
  GraphBuilder() = default;

  // Ops by TensorFlow's names. Nodes are called SCOPE/OP, numbered where that is taken.
  ValueRef Op(const std::string& op, const std::vector<ValueRef>& inputs,
              const Attributes& attrs = {});
  std::vector<ValueRef> Outputs(const std::string& op, const std::vector<ValueRef>& inputs,
                                int outputs, const Attributes& attrs = {});
  // A node that is ready but for its name; its types are `types`.
  std::vector<ValueRef> Raw(Node node, std::vector<TensorType> types);
  ValueRef Input(const std::string& name, const TensorType& type);
  // A free name in the scope, for Raw.
  std::string NodeName(const std::string& op) {
    return UniqueName(scope_.empty() ? op : scope_ + "/" + op);
  }
  // An Identity of exactly this name, for what clients see.
  ValueRef Named(const std::string& name, ValueRef value);

  ValueRef Const(const Tensor& tensor);  // the same tensor twice is one node
  ValueRef Scalar(DType dtype, double value);
  ValueRef Int64(int64_t value) { return Const(Tensor::Scalar(DType::kInt64, value)); }
  ValueRef Ints(const std::vector<int64_t>& values);  // int32 vector
  ValueRef Int(int64_t value);                        // int32 scalar
  ValueRef Text(const std::string& value);

  DType dtype(ValueRef v) const { return type(v).dtype; }
  const SymShape& shape(ValueRef v) const { return type(v).shape; }
  const TensorType& type(ValueRef v) const;
  // An error where the rank is unknown; 0 then.
  int rank(ValueRef v);
  Dim dim(ValueRef v, int axis) const;  // from the end when negative; unknown outside the rank
  // The size of a dim; an error that asks for `what` where it is not a number; 1 then.
  int64_t Size(ValueRef v, int axis, const std::string& what);
  bool Floating(ValueRef v) const { return IsFloating(dtype(v)); }
  void Refine(ValueRef v, const SymShape& shape) { types_[v.node][v.output].shape = shape; }

  WantedDim DimOf(ValueRef v, int axis);
  ValueRef ShapeVector(const std::vector<WantedDim>& dims);  // int32
  ValueRef Reshape(ValueRef v, const std::vector<WantedDim>& dims);
  ValueRef Fill(const std::vector<WantedDim>& dims, ValueRef scalar);

  ValueRef Cast(ValueRef v, DType dtype);  // v itself where it is of that type
  ValueRef Transpose(ValueRef v, const std::vector<int64_t>& order);
  ValueRef Reduce(const std::string& op, ValueRef v, const std::vector<int64_t>& axes, bool keep);
  static constexpr int64_t kToEnd = INT64_MAX;
  ValueRef Slice(ValueRef v, int axis, int64_t begin, int64_t end);
  ValueRef At(ValueRef v, int axis, int64_t index);  // without that axis
  ValueRef ExpandDims(ValueRef v, int axis);
  ValueRef Squeeze(ValueRef v, const std::vector<int64_t>& axes);
  ValueRef Concat(const std::vector<ValueRef>& values, int axis);
  ValueRef Pack(const std::vector<ValueRef>& values, int axis);
  std::vector<ValueRef> Split(ValueRef v, int axis, int parts);
  ValueRef Pad(ValueRef v, const std::vector<std::pair<int64_t, int64_t>>& pads, double value = 0);
  // Arithmetic with a number of v's type.
  ValueRef Add(ValueRef v, double n) { return Op("AddV2", {v, Scalar(dtype(v), n)}); }
  ValueRef Mul(ValueRef v, double n) { return Op("Mul", {v, Scalar(dtype(v), n)}); }
  ValueRef Add(ValueRef a, ValueRef b) { return Op("AddV2", {a, b}); }
  ValueRef Sub(ValueRef a, ValueRef b) { return Op("Sub", {a, b}); }
  ValueRef Mul(ValueRef a, ValueRef b) { return Op("Mul", {a, b}); }
  // Of any ranks >= 2, batched; of a matrix b, one product of all rows.
  ValueRef MatMul(ValueRef a, ValueRef b);

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
  // From begin to end of an axis, which is dropped where it is one element.
  ValueRef Stride(ValueRef v, int axis, int64_t begin, int64_t end, bool drop);
  std::string UniqueName(const std::string& wanted);
  ValueInfo InfoOf(ValueRef v) const;
  SymShape ShapeOf(const std::vector<WantedDim>& dims) const;

  Graph graph_;
  std::vector<std::vector<TensorType>> types_;  // by node and output
  std::map<std::string, int> names_;            // taken -> next number to try
  std::map<const void*, ValueRef> consts_;      // by the tensor's bytes, which the node keeps alive
  std::map<std::string, ValueRef> small_;       // numbers and short vectors
  std::string scope_;
  absl::Status status_;
};

}  // namespace floe::keras
