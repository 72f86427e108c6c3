#include "model/import/value_type.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/budget.h"
#include "model/check_inputs.h"
#include "model/op_def.h"

namespace floe {
namespace {

// The k-th entry of a list attribute; `otherwise` when there is none.
template <typename T>
T Entry(const Attrs& attrs, const std::string& name, size_t k, T otherwise) {
  const auto* list = attrs.Find<std::vector<T>>(name);
  return list != nullptr && k < list->size() ? (*list)[k] : std::move(otherwise);
}

// Outputs of ParseExample and its like: indices, values and shapes of sparse features, then dense
// ones.
DType ParsedType(const Attrs& attrs, size_t k) {
  const auto* sparse = attrs.Find<std::vector<DType>>("sparse_types");
  const size_t count = sparse == nullptr ? 0 : sparse->size();
  if (k >= 3 * count) return Entry(attrs, "Tdense", k - 3 * count, DType::kInvalid);
  return k / std::max<size_t>(count, 1) == 1 ? (*sparse)[k - count] : DType::kInt64;
}

DType FixedType(const std::string& op, size_t k) {
  static const std::map<std::string, std::vector<DType>> kTypes = {
      {"AudioSpectrogram", {DType::kFloat32}},
      {"DecodeBmp", {DType::kUInt8}},
      {"DecodeGif", {DType::kUInt8}},
      {"DecodeAndCropJpeg", {DType::kUInt8}},
      {"DecodeJpeg", {DType::kUInt8}},
      {"DecodeWav", {DType::kFloat32, DType::kInt32}},
      {"Mfcc", {DType::kFloat32}},
      {"ReadFile", {DType::kString}},
      {"ReaderRead", {DType::kString, DType::kString}},
      {"ReaderReadV2", {DType::kString, DType::kString}},
  };
  const auto found = kTypes.find(op);
  return found == kTypes.end() || k >= found->second.size() ? DType::kInvalid : found->second[k];
}

// Of an op that floe does not support, by the attributes that such ops name their outputs' types
// by.
TensorType ForeignType(const Node& node, size_t k) {
  const Attrs& attrs = node.attrs;
  const std::string op = attrs.String("tensorflow_op");
  TensorType type;
  type.dtype = FixedType(op, k);
  if (type.dtype == DType::kInvalid && op.compare(0, 5, "Parse") == 0)
    type.dtype = ParsedType(attrs, k);
  for (const char* name : {"output_types", "component_types", "OUT_TYPE", "Tout", "dtypes"}) {
    if (type.dtype == DType::kInvalid) type.dtype = Entry(attrs, name, k, DType::kInvalid);
  }
  for (const char* name :
       {"out_type", "output_type", "DstT", "Tout", "dtype", "output_dtype", "T"}) {
    if (type.dtype == DType::kInvalid) type.dtype = attrs.Type(name);
  }
  const SymShape one =
      k == 0 ? attrs.Get<SymShape>("shape", SymShape::UnknownRank()) : SymShape::UnknownRank();
  type.shape = Entry(attrs, "output_shapes", k, one);
  return type;
}

using Infos = std::vector<ValueInfo>;

Infos Untyped(const Node& node) {
  return Infos(static_cast<size_t>(std::max(node.num_outputs, 0)));
}

class Inference {
 public:
  Inference(const Graph& graph, int depth) : graph_(graph), depth_(depth) {
    infos_.resize(graph.size());
  }

  void Give(int node, const ValueInfo& info) { infos_[node] = {info}; }

  ValueInfo Of(ValueRef value) {
    std::vector<bool> needed(value.node + 1, false);
    needed[value.node] = true;
    for (int i = value.node; i >= 0; --i) {
      if (!needed[i] || graph_.node(i).op->name == "Unsupported") continue;
      for (const ValueRef& in : graph_.node(i).inputs) needed[in.node] = true;
    }
    for (int i = 0; i <= value.node; ++i) {
      if (needed[i] && infos_[i].empty()) infos_[i] = Infer(graph_.node(i));
    }
    return Known({value.node, value.output});
  }

 private:
  ValueInfo Known(ValueRef ref) const {
    const Infos& infos = infos_[ref.node];
    return ref.output < static_cast<int>(infos.size()) ? infos[ref.output] : ValueInfo();
  }

  Infos Infer(const Node& node) const {
    Infos inputs, outputs = Untyped(node);
    for (const ValueRef& in : node.inputs) inputs.push_back(Known(in));
    if (node.op->name == "Unsupported") {
      for (size_t k = 0; k < outputs.size(); ++k) outputs[k].type = ForeignType(node, k);
      return outputs;
    }
    if (!node.subgraphs.empty()) return InferSubgraph(node, inputs);
    if (node.op->infer == nullptr) return outputs;
    const absl::StatusOr<Types> types = InferChecked(node, inputs);
    for (size_t k = 0; types.ok() && k < types->size() && k < outputs.size(); ++k)
      outputs[k].type = (*types)[k];
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (node.op->name == "Const" && value != nullptr && !outputs.empty())
      outputs[0].constant = *value;
    return outputs;
  }

  // Only dtypes: which branch runs, or how often a loop goes round, may change shapes.
  Infos InferSubgraph(const Node& node, const Infos& inputs) const {
    constexpr int kMaxDepth = 64;
    const Graph& graph = *node.subgraphs.back();
    const size_t skipped = inputs.size() - std::min(inputs.size(), graph.inputs.size());
    Infos outputs = Untyped(node);
    // Bodies that several nodes share are looked at as often as they are used.
    if (depth_ >= kMaxDepth || !SpendVisits(graph.size() + 1).ok()) return outputs;
    Inference inner(graph, depth_ + 1);
    for (size_t k = 0; k < graph.inputs.size() && k + skipped < inputs.size(); ++k) {
      ValueInfo info;
      info.type.dtype = inputs[k + skipped].type.dtype;
      inner.Give(graph.inputs[k], info);
    }
    for (size_t k = 0; k < outputs.size() && k < graph.outputs.size(); ++k)
      outputs[k].type.dtype = inner.Of(graph.outputs[k]).type.dtype;
    return outputs;
  }

  const Graph& graph_;
  const int depth_;
  std::vector<Infos> infos_;  // by node; empty: not looked at
};

}  // namespace

std::vector<TensorType> TypesOfValues(const Graph& graph, absl::Span<const ValueRef> values) {
  Inference inference(graph, 0);
  std::vector<TensorType> types;
  for (const ValueRef& value : values) types.push_back(inference.Of(value).type);
  return types;
}

}  // namespace floe
