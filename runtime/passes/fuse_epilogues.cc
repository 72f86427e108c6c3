#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/analyze.h"
#include "runtime/passes/graph_util.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rebuild.h"

namespace floe {
namespace {

// That of an op; kNone: there is none.
Activation ActivationOf(const std::string& op) {
  static const std::map<std::string, Activation> ops = {
      {"Relu", Activation::kRelu},       {"Relu6", Activation::kRelu6},
      {"Sigmoid", Activation::kSigmoid}, {"Tanh", Activation::kTanh},
      {"Elu", Activation::kElu},         {"LeakyRelu", Activation::kLeakyRelu},
      {"Selu", Activation::kSelu},       {"Softplus", Activation::kSoftplus},
      {"Exp", Activation::kExp},         {"Softsign", Activation::kSoftsign},
      {"Gelu", Activation::kGelu},       {"GeluTanh", Activation::kGeluTanh},
      {"Mish", Activation::kMish}};
  const auto it = ops.find(op);
  return it == ops.end() ? Activation::kNone : it->second;
}

// Types of a graph's values, found when somebody asks for the first time.
class LazyTypes {
 public:
  LazyTypes(const Graph& graph, absl::Span<const TensorType> inputs, const KernelOptions& options)
      : graph_(graph), inputs_(inputs), options_(options) {}

  // Whether both have the same shape in every run.
  bool SameShape(ValueRef a, ValueRef b) {
    if (!analysis_.has_value()) analysis_ = AnalyzeWithRows(graph_, inputs_, options_);
    if (!analysis_->ok()) return false;
    const TensorType &x = (*analysis_)->at(a).type, &y = (*analysis_)->at(b).type;
    return x.dtype == y.dtype && x.shape == y.shape && x.shape.known();
  }

 private:
  const Graph& graph_;
  const absl::Span<const TensorType> inputs_;
  const KernelOptions& options_;
  std::optional<absl::StatusOr<Analysis>> analysis_;
};

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, absl::Span<const TensorType> inputs,
                const KernelOptions& options)
      : graph_(graph), types_(graph, inputs, options), uses_(graph), rebuild_(graph) {}

  Graph Run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (FuseBias(i) || FuseResidual(i) || FuseActivation(i) || FuseSwish(i)) continue;
      const int kept = rebuild_.Keep(i);
      if (SqueezesConv(i)) squeezes_.insert(kept);
    }
    return rebuild_.Finish();
  }

 private:
  // The node that makes `ref`, if it can still take an epilogue and `readers` reads of it are all
  // that there are. A Squeeze between them is passed over.
  const Node* Producer(ValueRef ref, size_t readers) const {
    if (uses_.users[ref.node].size() != readers || uses_.is_output[ref.node] ||
        !uses_.first_output_only[ref.node] || !rebuild_.Mapped(ref))
      return nullptr;
    const int made = rebuild_.Map(ref).node;
    const Node* node = &rebuild_.out().node(made);
    if (squeezes_.count(made) != 0) node = &rebuild_.out().node(node->inputs[0].node);
    const bool open = EpilogueOf(node->attrs).activation == Activation::kNone;
    return TakesEpilogue(*node) && open ? node : nullptr;
  }

  // Node i takes a dim of 1 from in front of the channels of a convolution that nobody else reads:
  // this is how a one-dimensional convolution ends.
  bool SqueezesConv(int i) const {
    const Node& node = graph_.node(i);
    if (node.op->name != "Squeeze" || uses_.OnlyUser(node.inputs[0].node) != i) return false;
    const Node& conv = graph_.node(node.inputs[0].node);
    std::vector<int64_t> axes = node.attrs.Ints("squeeze_dims");
    if (axes.empty()) axes = node.attrs.Ints("axis");
    if (conv.op->name != "Conv2D" || axes.size() != 1) return false;
    const int64_t axis = axes[0] < 0 ? axes[0] + 4 : axes[0];
    return axis == 1 || axis == 2;
  }

  // The fused node in the place of old node i, which read `ref`.
  void EmitFused(int i, ValueRef ref, Node fused) {
    const int made = rebuild_.Map(ref).node;
    if (squeezes_.count(made) == 0) {
      rebuild_.Emit(i, std::move(fused));
      return;
    }
    Node squeeze = rebuild_.out().node(made);
    squeeze.name = absl::StrCat(fused.name, "/squeezed");
    std::vector<int> controls = fused.control_inputs;
    squeeze.inputs[0] = {rebuild_.Append(std::move(fused), std::move(controls)), 0};
    squeezes_.insert(rebuild_.Emit(i, std::move(squeeze)));
  }

  bool FuseBias(int i) {
    const Node& node = graph_.node(i);
    const bool bias_add = node.op->name == "BiasAdd";
    if (!bias_add && node.op->name != "Add") return false;
    for (int side : {0, 1}) {
      if (bias_add && side == 1) break;
      const Node* producer = Producer(node.inputs[side], 1);
      if (producer == nullptr) continue;
      Epilogue epilogue = EpilogueOf(producer->attrs);
      if (epilogue.has_bias()) continue;
      const ValueRef given = node.inputs[1 - side];
      const bool squeezed = squeezes_.count(rebuild_.Map(node.inputs[side]).node) != 0;
      const std::optional<Tensor> bias = BiasOf(node, *producer, given, squeezed);
      if (!bias.has_value()) continue;
      Node fused = *producer;
      fused.name = node.name;
      epilogue.bias = static_cast<int>(fused.inputs.size());
      SetEpilogue(epilogue, &fused.attrs);
      const bool as_given = bias->data() == ConstantOf(graph_, given)->data() &&
                            bias->shape() == ConstantOf(graph_, given)->shape();
      fused.inputs.push_back(
          as_given
              ? rebuild_.Map(given)
              : ValueRef{rebuild_.Append(ConstNode(absl::StrCat(node.name, "/bias"), *bias)), 0});
      EmitFused(i, node.inputs[side], std::move(fused));
      return true;
    }
    return false;
  }

  // The sum of a convolution and another value of its shape: the convolution adds it.
  bool FuseResidual(int i) {
    const Node& node = graph_.node(i);
    if (node.op->name != "Add" || node.inputs[0] == node.inputs[1]) return false;
    for (const int side : {1, 0}) {
      const ValueRef ref = node.inputs[side], other = node.inputs[1 - side];
      const Node* producer = Producer(ref, 1);
      if (producer == nullptr || producer->op->name != "Conv2D" ||
          squeezes_.count(rebuild_.Map(ref).node) != 0 ||
          EpilogueOf(producer->attrs).has_residual() ||
          producer->attrs.String("data_format", "NHWC") != "NHWC" ||
          producer->attrs.Type("T", DType::kFloat32) != DType::kFloat32 ||
          !types_.SameShape(ref, other))
        continue;
      Node fused = *producer;
      fused.name = node.name;
      Epilogue epilogue = EpilogueOf(fused.attrs);
      epilogue.residual = static_cast<int>(fused.inputs.size());
      SetEpilogue(epilogue, &fused.attrs);
      fused.inputs.push_back(rebuild_.Map(other));
      rebuild_.Emit(i, std::move(fused));
      return true;
    }
    return false;
  }

  // The constant as one number a channel. BiasAdd adds along the channels wherever its format has
  // them; Add must broadcast along them. A single number for all stays an addition of its own
  // unless there is one channel.
  std::optional<Tensor> BiasOf(const Node& node, const Node& producer, ValueRef given,
                               bool squeezed) const {
    const Tensor* constant = ConstantOf(graph_, given);
    Channels channels = ChannelsOf(rebuild_.out(), producer);
    if (squeezed) {  // a dim less in front of the channels
      --channels.rank;
      --channels.axis;
    }
    if (constant == nullptr || channels.weights == nullptr ||
        constant->dtype() != DType::kFloat32 || constant->elements() != channels.count ||
        channels.count == 0)
      return std::nullopt;
    if (node.op->name == "BiasAdd") {
      const bool first = node.attrs.String("data_format") == "NCHW";
      const bool last = !first || (channels.rank == 2 && !channels.deep);
      return last && constant->shape().rank() == 1 ? std::optional<Tensor>(*constant)
                                                   : std::nullopt;
    }
    std::vector<float> values;
    if (!AlongAxis(*constant, channels.rank, channels.axis, channels.count, &values))
      return std::nullopt;
    return constant->Reshaped(Shape({channels.count}));
  }

  bool FuseActivation(int i) {
    const Node& node = graph_.node(i);
    const Activation activation = ActivationOf(node.op->name);
    if (activation == Activation::kNone) return false;
    const Node* producer = Producer(node.inputs[0], 1);
    if (producer == nullptr) return false;
    return EmitActivated(i, node.inputs[0], *producer, activation);
  }

  // Whether `ref` is x, or x * 1 that only `reader` reads: Keras writes its swish with such a
  // factor.
  bool IsTimesOne(ValueRef ref, ValueRef x, int reader) const {
    if (ref == x) return true;
    const Node& node = graph_.node(ref.node);
    if (node.op->name != "Mul" || uses_.OnlyUser(ref.node) != reader) return false;
    for (const int side : {0, 1}) {
      const Tensor* factor = ConstantOf(graph_, node.inputs[1 - side]);
      if (node.inputs[side] == x && factor != nullptr && factor->dtype() == DType::kFloat32 &&
          factor->shape().rank() == 0 && factor->as<float>()[0] == 1)
        return true;
    }
    return false;
  }

  // x * Sigmoid(x), in either order, where nobody else reads x or the sigmoid.
  bool FuseSwish(int i) {
    const Node& node = graph_.node(i);
    if (node.op->name != "Mul") return false;
    for (int side : {0, 1}) {
      const ValueRef x = node.inputs[side], gate = node.inputs[1 - side];
      const Node& sigmoid = graph_.node(gate.node);
      if (sigmoid.op->name != "Sigmoid" || !IsTimesOne(sigmoid.inputs[0], x, gate.node) ||
          uses_.OnlyUser(gate.node) != i)
        continue;
      const Node* producer = Producer(x, 2);
      if (producer != nullptr) return EmitActivated(i, x, *producer, Activation::kSwish);
    }
    return false;
  }

  bool EmitActivated(int i, ValueRef ref, const Node& producer, Activation activation) {
    if (producer.attrs.Type("T", DType::kFloat32) != DType::kFloat32) return false;
    Node fused = producer;
    fused.name = graph_.node(i).name;
    Epilogue epilogue = EpilogueOf(fused.attrs);
    epilogue.activation = activation;
    if (activation == Activation::kLeakyRelu)
      epilogue.alpha = graph_.node(i).attrs.Float("alpha", epilogue.alpha);
    SetEpilogue(epilogue, &fused.attrs);
    EmitFused(i, ref, std::move(fused));
    return true;
  }

  const Graph& graph_;
  LazyTypes types_;
  const Uses uses_;
  Rebuild rebuild_;
  std::set<int> squeezes_;  // of the new graph, each the only reader of a convolution
};

}  // namespace

void FuseEpilogues(Graph* graph, absl::Span<const TensorType> inputs,
                   const KernelOptions& options) {
  *graph = EpilogueFuser(*graph, inputs, options).Run();
}

}  // namespace floe
