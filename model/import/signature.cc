#include "model/import/signature.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/graphdef/sinks.h"
#include "model/import/value_type.h"
#include "model/op_def.h"

namespace floe {
namespace {

// What tools and configuration may name: every output of every node.
std::vector<std::string> AllTensorNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    for (int k = 0; k < node.num_outputs; ++k) names.push_back(TensorNameOf(node.name, k));
  }
  return names;
}

constexpr int64_t kMaxDefaultBytes = 1 << 20;

// Unknown dims are 1, and an unknown rank is 0.
Shape WithOnes(const SymShape& shape) {
  Shape ones;
  if (!shape.rank_known()) return ones;
  for (Dim dim : shape.dims()) ones.push_back(dim.known() ? dim.size() : 1);
  return ones;
}

// The default as the placeholder would take it from a caller: a scalar fills the declared shape.
absl::StatusOr<Tensor> FittedDefault(const Tensor& scalar, const SignatureTensor& input) {
  const Shape shape = WithOnes(input.type.shape);
  if (scalar.shape().rank() != 0 || shape.rank() == 0) return scalar;
  const size_t element =
      scalar.dtype() == DType::kString ? sizeof(std::string) : DTypeSize(scalar.dtype());
  if (const auto elements = CheckedElements(shape.dims(), element, kMaxDefaultBytes);
      !elements.ok()) {
    return Annotate(elements.status(),
                    absl::StrCat("the default of placeholder ", Quoted(input.tensor_name),
                                 " of shape ", input.type.shape.ToString()));
  }
  Tensor filled = Tensor::Allocate(scalar.dtype(), shape);
  auto* to = static_cast<std::byte*>(filled.mutable_data());
  for (int64_t i = 0; i < shape.elements(); ++i, to += element) CopyElements(scalar.view(), to);
  return filled;
}

std::string OpNameOf(const Node& node) {
  return node.op->name == "Unsupported" ? Escaped(node.attrs.String("tensorflow_op"))
                                        : node.op->name;
}

class SignatureBuilder {
 public:
  SignatureBuilder(Graph* graph, const ImportOptions& options) : graph_(*graph), options_(options) {
    Index();
  }

  absl::StatusOr<SignatureDef> Complete(SignatureDef def) {
    FLOE_RETURN_IF_ERROR(CheckDefaults());
    for (SignatureTensor& input : def.inputs) {
      FLOE_ASSIGN_OR_RETURN(const ValueRef ref, Existing(input));
      if (!IsPlaceholder(ref)) continue;
      const SignatureTensor file = input;
      FLOE_ASSIGN_OR_RETURN(input, InputOf(file.key, graph_.node(ref.node)));
      if (!input.type.shape.rank_known()) input.type.shape = file.type.shape;
      if (!file.optional) continue;
      input.optional = true;
      input.default_value = file.default_value;
    }
    for (SignatureTensor& output : def.outputs) {
      FLOE_ASSIGN_OR_RETURN(const ValueRef ref, Existing(output));
      output.tensor_name = TensorNameOf(graph_.node(ref.node).name, ref.output);
    }
    FLOE_RETURN_IF_ERROR(AddDefaulted(&def));
    return def;
  }

  absl::StatusOr<SignatureDef> Build() {
    SignatureDef signature;
    FLOE_RETURN_IF_ERROR(FeedInnerTensors());
    FLOE_RETURN_IF_ERROR(AddOutputs(&signature));
    if (options_.input_aliases.empty()) FLOE_RETURN_IF_ERROR(FeedSources(signature));
    FLOE_RETURN_IF_ERROR(AddInputs(&signature));
    return signature;
  }

 private:
  static bool IsInput(const Node& node) {
    return node.op->name == "Input" || node.op->name == "PlaceholderWithDefault";
  }

  // The default of a placeholder, where it is a constant; null: there is none, or it is computed.
  const Tensor* ConstantDefault(const Node& node) const {
    if (node.op->name != "PlaceholderWithDefault") return nullptr;
    const Node& from = graph_.node(node.inputs[0].node);
    return from.op->name == "Const" ? from.attrs.Find<Tensor>("value") : nullptr;
  }

  // A placeholder whose default is computed is no input, unless somebody names it.
  bool IsComputed(int i) const {
    const Node& node = graph_.node(i);
    if (node.op->name != "PlaceholderWithDefault" || ConstantDefault(node) != nullptr ||
        options_.placeholder_defaults.contains(node.name))
      return false;
    return std::none_of(options_.feeds.begin(), options_.feeds.end(), [&](const auto& feed) {
      return Find(feed.name) == ValueRef{i, 0};
    });
  }

  void Index() {
    index_.clear();
    for (int i = 0; i < graph_.size(); ++i) index_[graph_.node(i).name] = i;
  }

  std::optional<ValueRef> Find(const std::string& tensor) const {
    const std::optional<TensorName> name =
        FindTensorName(tensor, [this](const std::string& node) { return index_.count(node) != 0; });
    if (!name.has_value()) return std::nullopt;
    const ValueRef ref{index_.at(name->node), name->output};
    if (ref.output >= graph_.node(ref.node).num_outputs) return std::nullopt;
    return ref;
  }

  bool IsPlaceholder(ValueRef ref) const {
    return ref.output == 0 && IsInput(graph_.node(ref.node));
  }

  // ---- tensors inside the graph that callers feed ----

  struct Fed {
    std::string what;               // for errors
    std::string key;                // as callers name it; empty: as the placeholder
    DType dtype = DType::kInvalid;  // what callers are going to give, if that is known
  };
  using FedTensors = std::map<ValueRef, Fed>;

  absl::Status FeedInnerTensors() {
    FedTensors fed;
    for (const auto& [key, tensor] : options_.input_aliases) {
      const std::optional<ValueRef> ref = Find(tensor);
      if (ref.has_value() && !IsPlaceholder(*ref)) fed.insert({*ref, {"input " + Quoted(key), {}}});
    }
    for (const ImportOptions::Feed& feed : options_.feeds) {
      const std::optional<ValueRef> ref = Find(feed.name);
      if (!ref.has_value() || IsPlaceholder(*ref)) continue;
      fed[*ref] = {"input " + Quoted(feed.name), feed.name, feed.dtype};
    }
    return MakeInputs(fed);
  }

  // Training read its data from iterators and queues; where nobody chooses inputs, what these gave
  // comes with requests.
  absl::Status FeedSources(const SignatureDef& signature) {
    const std::vector<bool> needed = NeededBy(signature);
    FedTensors fed;
    for (int i = 0; i < graph_.size(); ++i) {
      if (!needed[i]) continue;
      for (const ValueRef& in : graph_.node(i).inputs) {
        const Node& from = graph_.node(in.node);
        if (!IsSource(from) || fed.count(in) != 0) continue;
        fed[in] = {"the graph's source of data", TensorNameOf(from.name, in.output)};
      }
    }
    return MakeInputs(fed);
  }

  static bool IsSource(const Node& node) {
    if (node.op->name != "Unsupported") return false;
    const std::string op = node.attrs.String("tensorflow_op");
    return absl::StartsWith(op, "IteratorGetNext") || absl::StartsWith(op, "QueueDequeue");
  }

  absl::Status MakeInputs(const FedTensors& fed) {
    if (fed.empty()) return absl::OkStatus();
    std::vector<ValueRef> refs;
    for (const auto& [ref, tensor] : fed) refs.push_back(ref);
    const std::vector<TensorType> types = TypesOfValues(graph_, refs);
    std::map<ValueRef, ValueRef> moved;
    std::set<int> cut;  // nobody waits for these any more
    for (size_t k = 0; k < refs.size(); ++k) {
      const Fed& tensor = fed.at(refs[k]);
      TensorType type = types[k];
      if (type.dtype == DType::kInvalid) type.dtype = tensor.dtype;
      FLOE_RETURN_IF_ERROR(Annotate(CheckFed(refs[k], type), tensor.what));
      const ValueRef input = MakeInput(refs[k], type);
      if (input != refs[k]) moved[refs[k]] = input;
      cut.insert(refs[k].node);
      if (!tensor.key.empty()) keys_[graph_.node(input.node).name] = tensor.key;
    }
    for (Node& node : graph_.mutable_nodes()) {
      std::erase_if(node.control_inputs, [&](int from) { return cut.count(from) != 0; });
      for (ValueRef& in : node.inputs) {
        if (const auto to = moved.find(in); to != moved.end()) in = to->second;
      }
    }
    if (!SortTopologically(&graph_)) return absl::InternalError("feeding tensors left a cycle");
    Index();
    return absl::OkStatus();
  }

  absl::Status CheckFed(ValueRef ref, const TensorType& type) const {
    if (type.dtype != DType::kInvalid && !IsHandle(type.dtype)) return absl::OkStatus();
    const Node& node = graph_.node(ref.node);
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", Quoted(TensorNameOf(node.name, ref.output)), " of ", OpNameOf(node), " is ",
        type.dtype == DType::kInvalid ? "of a type that floe cannot tell"
                                      : absl::StrCat("a ", DTypeName(type.dtype)),
        "; feed a tensor below it"));
  }

  // The placeholder that takes the value's place. A node of one output becomes it; one of several
  // keeps the others.
  ValueRef MakeInput(ValueRef ref, const TensorType& type) {
    Node input;
    input.op = FindOp("Input");
    input.attrs.Set("dtype", type.dtype);
    input.attrs.Set("shape", type.shape);
    Node& old = graph_.mutable_node(ref.node);
    if (old.num_outputs == 1) {
      input.name = old.name;
      old = std::move(input);
      return ref;
    }
    input.name = absl::StrCat(old.name, "__", ref.output);
    while (index_.count(input.name) != 0) input.name += "_";
    fed_[TensorNameOf(old.name, ref.output)] = input.name;
    const int added = graph_.Add(std::move(input));
    index_[graph_.node(added).name] = added;
    return {added, 0};
  }

  // ---- inputs ----

  absl::StatusOr<SignatureTensor> InputOf(const std::string& key, const Node& node) const {
    SignatureTensor input{.key = key, .tensor_name = node.name};
    input.type.dtype = node.attrs.Type("dtype");
    input.type.shape = node.attrs.Get<SymShape>("shape", SymShape::UnknownRank());
    const auto configured = options_.placeholder_defaults.find(node.name);
    if (configured != options_.placeholder_defaults.end()) {
      input.optional = true;
      FLOE_ASSIGN_OR_RETURN(input.default_value, FittedDefault(configured->second, input));
    } else if (const Tensor* const value = ConstantDefault(node); value != nullptr) {
      input.optional = true;
      input.default_value = *value;
    } else if (IsLearningPhase(node.name) && input.type.dtype == DType::kBool) {
      input.optional = true;
      input.default_value = Tensor::Scalar(DType::kBool, false);
    }
    if (input.default_value.valid() && input.default_value.dtype() != input.type.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("the default of placeholder ", Quoted(node.name), " is ",
                       DTypeName(input.default_value.dtype()), ", the placeholder is ",
                       DTypeName(input.type.dtype)));
    }
    return input;
  }

  absl::StatusOr<ValueRef> Existing(const SignatureTensor& tensor) const {
    const std::optional<ValueRef> ref = Find(tensor.tensor_name);
    if (ref.has_value()) return *ref;
    return NotFound(Quoted(tensor.key), tensor.tensor_name, AllTensorNames(graph_));
  }

  absl::Status CheckDefaults() const {
    for (const auto& [name, value] : options_.placeholder_defaults) {
      const auto found = index_.find(name);
      if (found == index_.end() || !IsInput(graph_.node(found->second)))
        return NotFound("placeholder_defaults", name, PlaceholderNames());
    }
    return absl::OkStatus();
  }

  absl::Status AddInputs(SignatureDef* signature) const {
    FLOE_RETURN_IF_ERROR(CheckDefaults());
    if (!options_.input_aliases.empty()) {
      for (const auto& [key, tensor] : options_.input_aliases) {
        const std::optional<ValueRef> ref = Find(Renamed(tensor));
        if (!ref.has_value() || !IsPlaceholder(*ref))
          return NotFound("input " + Quoted(key), tensor, AllTensorNames(graph_));
        FLOE_ASSIGN_OR_RETURN(SignatureTensor input, InputOf(key, graph_.node(ref->node)));
        signature->inputs.push_back(std::move(input));
      }
      return AddDefaulted(signature);
    }
    const std::vector<bool> needed = NeededBy(*signature);
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!IsInput(node) || IsComputed(i) || (!needed[i] && IsLeftover(node))) continue;
      const auto key = keys_.find(node.name);
      FLOE_ASSIGN_OR_RETURN(SignatureTensor input,
                            InputOf(key == keys_.end() ? node.name : key->second, node));
      if (!needed[i] && !input.optional) MakeIgnored(&input);
      signature->inputs.push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  // The placeholders that the chosen inputs leave out, the outputs need and a default feeds.
  absl::Status AddDefaulted(SignatureDef* signature) const {
    std::set<std::string> taken, keys;
    for (const SignatureTensor& input : signature->inputs) {
      taken.insert(input.tensor_name);
      keys.insert(input.key);
    }
    const std::vector<bool> needed = NeededBy(*signature);
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      if (!needed[i] || !IsInput(node) || taken.contains(node.name)) continue;
      // One with a default of its own passes that on, as in TensorFlow.
      if (node.op->name != "Input" && !options_.placeholder_defaults.contains(node.name)) continue;
      FLOE_ASSIGN_OR_RETURN(SignatureTensor input, InputOf(node.name, node));
      if (!input.default_value.valid()) continue;
      if (keys.contains(node.name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "signature.inputs: ", Quoted(node.name), " names another input, and placeholder ",
            Quoted(node.name), " keeps its own name; choose another"));
      }
      signature->inputs.push_back(std::move(input));
    }
    return absl::OkStatus();
  }

  // What TensorFlow's lowering of control flow leaves behind, by the dozen, and handles of what
  // freezing took away; nobody feeds those.
  static bool IsLeftover(const Node& node) {
    return node.name.find("unused_control_flow_input") != std::string::npos ||
           IsHandle(node.attrs.Type("dtype"));
  }

  // Keras on TF1 leaves it behind in every frozen graph; serving is not training.
  static bool IsLearningPhase(const std::string& name) {
    const std::string learning_phase = "keras_learning_phase";
    return name == learning_phase || absl::EndsWith(name, "/" + learning_phase);
  }

  // A placeholder that no output reads may be fed, and need not be.
  static void MakeIgnored(SignatureTensor* input) {
    input->optional = true;
    const Shape shape = WithOnes(input->type.shape);
    const size_t element = DTypeSize(input->type.dtype);
    if (element == 0 || !CheckedElements(shape.dims(), element, kMaxDefaultBytes).ok()) return;
    input->default_value = Tensor::Allocate(input->type.dtype, shape);
    const size_t bytes = input->default_value.bytes();
    if (bytes != 0) std::memset(input->default_value.mutable_data(), 0, bytes);
  }

  std::vector<bool> NeededBy(const SignatureDef& signature) const {
    std::vector<bool> needed(graph_.size(), false);
    for (const SignatureTensor& output : signature.outputs) {
      needed[Find(output.tensor_name)->node] = true;
    }
    for (int i = graph_.size() - 1; i >= 0; --i) {
      if (!needed[i]) continue;
      for (const ValueRef& in : graph_.node(i).inputs) needed[in.node] = true;
      for (int control : graph_.node(i).control_inputs) needed[control] = true;
    }
    return needed;
  }

  absl::Status AddOutput(const std::string& key, const std::string& tensor,
                         SignatureDef* signature) const {
    FLOE_RETURN_IF_ERROR(ParseTensorName(tensor).status());
    const std::optional<ValueRef> ref = Find(Renamed(tensor));
    if (!ref.has_value()) {
      return NotFound(key == tensor ? "output" : "output " + Quoted(key), tensor,
                      AllTensorNames(graph_));
    }
    signature->outputs.push_back(
        {.key = key, .tensor_name = TensorNameOf(graph_.node(ref->node).name, ref->output)});
    return absl::OkStatus();
  }

  absl::Status AddOutputs(SignatureDef* signature) const {
    if (!options_.fetches.empty()) {
      for (const std::string& fetch : options_.fetches)
        FLOE_RETURN_IF_ERROR(AddOutput(fetch, fetch, signature));
      return absl::OkStatus();
    }
    if (!options_.output_aliases.empty()) {
      for (const auto& [key, tensor] : options_.output_aliases)
        FLOE_RETURN_IF_ERROR(AddOutput(key, tensor, signature));
      return absl::OkStatus();
    }
    for (const std::string& sink : Sinks()) FLOE_RETURN_IF_ERROR(AddOutput(sink, sink, signature));
    if (signature->outputs.empty()) {
      return absl::InvalidArgumentError(
          "the graph has no outputs: every node is consumed by another, a constant or a "
          "placeholder; "
          "name the outputs in the configuration (signature.outputs)");
    }
    return absl::OkStatus();
  }

  // Handles are what loops and freezing left behind; no reply can carry them.
  std::vector<std::string> Sinks() const {
    const std::vector<std::string> names = SinkNames(graph_);
    std::vector<ValueRef> refs;
    refs.reserve(names.size());
    for (const std::string& name : names) refs.push_back(Find(name).value_or(ValueRef{0, 0}));
    const std::vector<TensorType> types = TypesOfValues(graph_, refs);
    std::vector<std::string> sinks;
    for (size_t k = 0; k < names.size(); ++k) {
      if (!IsHandle(types[k].dtype)) sinks.push_back(names[k]);
    }
    return sinks;
  }

  std::vector<std::string> PlaceholderNames() const {
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes()) {
      if (IsInput(node)) names.push_back(node.name);
    }
    return names;
  }

  absl::Status NotFound(const std::string& what, const std::string& name,
                        const std::vector<std::string>& candidates) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the graph has no ", Quoted(name),
                     "; nearest: ", QuotedList(NearestNames(name, candidates)),
                     "; sinks of the graph: ", QuotedList(SinkNames(graph_))));
  }

  // The name of the placeholder that stands for a tensor that is fed, or the tensor's own.
  std::string Renamed(const std::string& tensor) const {
    const std::optional<TensorName> name =
        FindTensorName(tensor, [this](const std::string& node) { return index_.count(node) != 0; });
    if (!name.has_value()) return tensor;
    const auto fed = fed_.find(TensorNameOf(name->node, name->output));
    return fed == fed_.end() ? tensor : fed->second;
  }

  Graph& graph_;
  const ImportOptions& options_;
  std::map<std::string, int> index_;
  std::map<std::string, std::string> fed_;   // tensor of a node with several -> its placeholder
  std::map<std::string, std::string> keys_;  // placeholder of a tensor that is fed -> key
};

}  // namespace

GraphChoice ChoiceOf(const ImportOptions& options) {
  GraphChoice choice;
  choice.fetches = options.fetches;
  if (choice.fetches.empty()) {
    for (const auto& [key, tensor] : options.output_aliases) choice.fetches.push_back(tensor);
  }
  for (const auto& [key, tensor] : options.input_aliases) choice.feeds.push_back(tensor);
  for (const ImportOptions::Feed& feed : options.feeds) choice.feeds.push_back(feed.name);
  return choice;
}

absl::StatusOr<SignatureDef> CompleteSignature(Graph* graph, SignatureDef def,
                                               const ImportOptions& options) {
  return SignatureBuilder(graph, options).Complete(std::move(def));
}

absl::StatusOr<SignatureDef> BuildSignature(Graph* graph, const ImportOptions& options) {
  return SignatureBuilder(graph, options).Build();
}

}  // namespace floe
