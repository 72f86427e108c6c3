// Einsum that multiplies the last axes of a value by constant weights, as Keras writes the
// projections of attention, becomes BatchMatMul between Reshapes, which takes a bias along.
#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "model/ops/einsum.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

using Labels = std::vector<int>;

class Multiplier {
 public:
  Multiplier(const Graph& graph, const Analysis& analysis)
      : graph_(graph), analysis_(analysis), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (!Multiply(i)) rebuild_.Keep(i);
    }
    return rebuild_.Finish();
  }

 private:
  bool Multiply(int i) {
    const Node& node = graph_.node(i);
    if (node.op->name != "Einsum" || node.inputs.size() != 2 || !node.control_inputs.empty())
      return false;
    const Tensor* weights = ConstantOf(graph_, node.inputs[1]);
    const TensorType& x = analysis_.at(node.inputs[0]).type;
    if (weights == nullptr || weights->dtype() != DType::kFloat32 || x.dtype != DType::kFloat32 ||
        !x.shape.rank_known())
      return false;
    const auto labels =
        ops::ParseEinsum(node.attrs.String("equation"), {x.shape.rank(), weights->shape().rank()});
    if (!labels.ok()) return false;
    // x is [lead, summed], the weights are [summed, columns], the result is [lead, columns].
    const Labels &in = labels->inputs[0], &of_weights = labels->inputs[1], &out = labels->output;
    size_t summed = 0;
    while (summed < of_weights.size() &&
           std::find(out.begin(), out.end(), of_weights[summed]) == out.end())
      ++summed;
    const Labels inner(of_weights.begin(), of_weights.begin() + static_cast<ptrdiff_t>(summed));
    Labels lead = in;
    if (summed == 0 || summed == of_weights.size() || in.size() <= summed) return false;
    lead.resize(in.size() - summed);
    Labels whole = lead;
    whole.insert(whole.end(), inner.begin(), inner.end());
    Labels result = lead;
    result.insert(result.end(), of_weights.begin() + static_cast<ptrdiff_t>(summed),
                  of_weights.end());
    // Every label once in each of them: the count says that none repeats.
    if (in != whole || out != result ||
        labels->count != static_cast<int>(in.size() + of_weights.size() - summed) ||
        std::find(labels->broadcasts.begin(), labels->broadcasts.end(), true) !=
            labels->broadcasts.end())
      return false;
    return Emit(i, *weights, static_cast<int>(summed));
  }

  bool Emit(int i, const Tensor& weights, int summed) {
    const Node& node = graph_.node(i);
    const SymShape& x = analysis_.at(node.inputs[0]).type.shape;
    const int lead = x.rank() - summed;
    int64_t inner = 1, columns = 1;
    for (int k = 0; k < weights.shape().rank(); ++k)
      (k < summed ? inner : columns) *= weights.shape().dim(k);
    std::vector<int64_t> dims;
    for (int k = 0; k < x.rank(); ++k) {
      const Dim dim = x.dim(k);
      if (k >= lead) {
        if (dim != Dim(weights.shape().dim(k - lead))) return false;
        continue;
      }
      if (!dim.concrete() && std::count(dims.begin(), dims.end(), -1) != 0) return false;
      if (dim.concrete() && dim.size() == 0) return false;
      dims.push_back(dim.concrete() ? dim.size() : -1);
    }
    if (weights.elements() == 0 || lead == 0) return false;
    ValueRef data = rebuild_.Map(node.inputs[0]);
    if (summed > 1) {
      std::vector<int64_t> flat = dims;
      flat.push_back(inner);
      data = Reshape(absl::StrCat(node.name, "/flat"), data, flat);
    }
    Node product;
    product.name = absl::StrCat(node.name, "/product");
    product.op = FindOp("BatchMatMul");
    product.attrs.Set("T", DType::kFloat32);
    const Tensor matrix = weights.Reshaped(Shape({inner, columns}));
    product.inputs = {data,
                      {rebuild_.Append(ConstNode(absl::StrCat(node.name, "/weights"), matrix)), 0}};
    if (weights.shape().rank() - summed == 1) {
      product.name = node.name;
      rebuild_.Emit(i, std::move(product));
      return true;
    }
    const ValueRef multiplied{rebuild_.Append(std::move(product)), 0};
    for (int k = summed; k < weights.shape().rank(); ++k) dims.push_back(weights.shape().dim(k));
    rebuild_.Emit(i, ReshapeNode(node.name, multiplied, dims));
    return true;
  }

  Node ReshapeNode(const std::string& name, ValueRef data, const std::vector<int64_t>& dims) {
    Node node;
    node.name = name;
    node.op = FindOp("Reshape");
    node.attrs.Set("Tshape", DType::kInt64);
    const Tensor shape = Tensor::Vector(DType::kInt64, dims);
    node.inputs = {data, {rebuild_.Append(ConstNode(absl::StrCat(name, "/shape"), shape)), 0}};
    return node;
  }
  ValueRef Reshape(const std::string& name, ValueRef data, const std::vector<int64_t>& dims) {
    return {rebuild_.Append(ReshapeNode(name, data, dims)), 0};
  }

  const Graph& graph_;
  const Analysis& analysis_;
  Rebuild rebuild_;
};

}  // namespace

absl::Status MultiplyEinsums(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options) {
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), [&](const Node& node) {
        return node.op->name == "Einsum" && node.inputs.size() == 2 &&
               ConstantOf(*graph, node.inputs[1]) != nullptr;
      }))
    return absl::OkStatus();
  FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeWithRows(*graph, inputs, options));
  *graph = Multiplier(*graph, analysis).Run();
  return absl::OkStatus();
}

}  // namespace floe
