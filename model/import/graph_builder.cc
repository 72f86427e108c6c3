#include "model/import/graph_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status.h"
#include "model/check_inputs.h"

namespace floe::build {
namespace {

const TensorType kNothing;

// Far past every model of keras.applications. Models in models, each called several times, may
// make more than any machine has room for.
constexpr int kMostNodes = 100'000;

// What equal constants have in common: their bytes where these are few, else their place.
std::string KeyOf(const Tensor& tensor) {
  constexpr size_t kFew = 64;
  const std::string type =
      absl::StrCat(DTypeName(tensor.dtype()), " ", tensor.shape().ToString(), " ");
  const size_t bytes = static_cast<size_t>(tensor.elements()) * DTypeSize(tensor.dtype());
  if (tensor.dtype() == DType::kString || IsHandle(tensor.dtype()) || bytes > kFew)
    return absl::StrCat(type, "at ", absl::Hex(reinterpret_cast<uintptr_t>(tensor.data())));
  return type + std::string(static_cast<const char*>(tensor.data()), bytes);
}

}  // namespace

void GraphBuilder::AnnotateError(const std::string& prefix) { status_ = Annotate(status_, prefix); }

std::string GraphBuilder::UniqueName(const std::string& wanted) {
  const auto [found, fresh] = names_.emplace(wanted, 1);
  if (fresh) return wanted;
  for (;;) {
    std::string name = absl::StrCat(wanted, "_", found->second++);
    if (names_.emplace(name, 1).second) return name;
  }
}

const TensorType& GraphBuilder::type(ValueRef v) const {
  if (v.node < 0 || v.node >= static_cast<int>(types_.size())) return kNothing;
  const std::vector<TensorType>& outputs = types_[v.node];
  return v.output < static_cast<int>(outputs.size()) ? outputs[v.output] : kNothing;
}

ValueInfo GraphBuilder::InfoOf(ValueRef v) const {
  ValueInfo info{type(v), {}, {}};
  const Tensor* value = graph_.node(v.node).attrs.Find<Tensor>("value");
  if (value != nullptr && graph_.node(v.node).op->name == "Const") info.constant = *value;
  return info;
}

std::vector<ValueRef> GraphBuilder::Raw(Node node, std::vector<TensorType> types) {
  if (graph_.size() >= kMostNodes) {
    Fail(absl::ResourceExhaustedError(absl::StrCat("the model needs more than ", kMostNodes,
                                                   " nodes; a part of it is called too often")));
    return std::vector<ValueRef>(types.size());
  }
  node.name = UniqueName(node.name.empty() ? InScope(node.op->name) : node.name);
  node.num_outputs = static_cast<int>(types.size());
  const int index = graph_.Add(std::move(node));
  std::vector<ValueRef> outputs;
  outputs.reserve(types.size());
  for (int k = 0; k < static_cast<int>(types.size()); ++k) outputs.push_back({index, k});
  types_.push_back(std::move(types));
  return outputs;
}

std::vector<ValueRef> GraphBuilder::Outputs(const std::string& op,
                                            const std::vector<ValueRef>& inputs, int outputs,
                                            const Attributes& attrs) {
  std::vector<ValueRef> none(outputs);
  if (!ok()) return none;
  Node node;
  node.op = FindTensorFlowOp(op);
  if (node.op == nullptr) node.op = FindOp(op);
  if (node.op == nullptr) {
    Fail(absl::UnimplementedError(absl::StrCat("floe has no op ", op)));
    return none;
  }
  node.name = InScope(op);
  node.inputs = inputs;
  node.num_outputs = outputs;
  for (const auto& [name, value] : attrs) node.attrs.Set(name, value);
  std::vector<ValueInfo> infos;
  for (const ValueRef& in : inputs) {
    if (in.node < 0 || in.node >= graph_.size()) {
      Fail(absl::InternalError(absl::StrCat(op, " was given no value")));
      return none;
    }
    infos.push_back(InfoOf(in));
  }
  if (const absl::Status spent = SpendVisits(1); !spent.ok()) {
    Fail(spent);
    return none;
  }
  absl::StatusOr<Types> types = InferChecked(node, infos);
  if (!types.ok()) {
    Fail(Annotate(types.status(), op));
    return none;
  }
  if (static_cast<int>(types->size()) < outputs) {
    Fail(absl::InternalError(absl::StrCat(op, " gives ", types->size(), " values")));
    return none;
  }
  types->resize(outputs);
  return Raw(std::move(node), *std::move(types));
}

ValueRef GraphBuilder::Op(const std::string& op, const std::vector<ValueRef>& inputs,
                          const Attributes& attrs) {
  const OpDef* def = FindTensorFlowOp(op);
  const int outputs = def == nullptr || def->output_names.empty()
                          ? 1
                          : std::max(1, static_cast<int>(def->output_names.size()));
  return Outputs(op, inputs, outputs, attrs)[0];
}

ValueRef GraphBuilder::Const(const Tensor& tensor) {
  if (!ok()) return {};
  ValueRef& known = consts_[KeyOf(tensor)];  // the node keeps what it names alive
  if (known.node >= 0) return known;
  Node node;
  node.op = FindTensorFlowOp("Const");
  node.attrs.Set("dtype", tensor.dtype());
  node.attrs.Set("value", tensor);
  known = Raw(std::move(node), {{tensor.dtype(), SymShape(tensor.shape())}})[0];
  return known;
}

void GraphBuilder::Refine(ValueRef v, const SymShape& shape) {
  if (ok()) types_[v.node][v.output].shape = shape;
}

}  // namespace floe::build
