#include "runtime/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/op_def.h"
#include "model/tables.h"
#include "runtime/device_weights.h"
#include "runtime/nested_plan.h"
#include "runtime/passes/load_tables.h"

namespace floe {
namespace {

bool SameValue(const TensorView& a, const Tensor& b) {
  return a.dtype == b.dtype() && a.shape == b.shape() && DTypeSize(a.dtype) != 0 &&
         (b.bytes() == 0 || std::memcmp(a.data, b.data(), b.bytes()) == 0);
}

std::map<std::string, int> IndexByName(const Graph& graph) {
  std::map<std::string, int> index;
  for (int i = 0; i < graph.size(); ++i) index[graph.node(i).name] = i;
  return index;
}

// An input or output of a signature; node -1: the graph has none of this name.
ValueRef RefOf(const std::string& tensor, const std::map<std::string, int>& index) {
  const size_t colon = tensor.rfind(':');
  const auto found = index.find(tensor.substr(0, colon));
  const int output = colon == std::string::npos ? 0 : std::atoi(tensor.c_str() + colon + 1);
  return {found == index.end() ? -1 : found->second, output};
}

// One signature's choice of a graph.
class Selection {
 public:
  explicit Selection(Graph whole) : graph_(std::move(whole)), index_(IndexByName(graph_)) {}

  // The graph with the signature's outputs selected. Inputs that are `taken` become inputs of the
  // graph; optional ones that are not take their default.
  absl::StatusOr<Graph> Run(const SignatureDef& def, const std::vector<bool>& taken) {
    std::vector<std::string> inputs;  // nodes
    for (size_t k = 0; k < def.inputs.size(); ++k) {
      const SignatureTensor& input = def.inputs[k];
      FLOE_ASSIGN_OR_RETURN(const ValueRef ref, Find(input.tensor_name));
      if (taken[k]) {
        inputs.push_back(Feed(ref, input.type));
      } else if (input.default_value.valid()) {
        Node& node = graph_.mutable_node(ref.node);
        node.op = FindOp("Const");
        node.inputs.clear();
        node.attrs.Set("dtype", input.default_value.dtype());
        node.attrs.Set("value", input.default_value);
      }
    }
    std::vector<ValueRef> outputs;
    for (const SignatureTensor& output : def.outputs) {
      FLOE_ASSIGN_OR_RETURN(const ValueRef ref, Find(output.tensor_name));
      outputs.push_back(MovedTo(ref));
    }
    std::vector<int> position(graph_.size());
    std::iota(position.begin(), position.end(), 0);
    if (!moved_.empty()) FLOE_RETURN_IF_ERROR(Rewire(&position));
    for (const std::string& node : inputs) graph_.inputs.push_back(position[index_.at(node)]);
    for (const ValueRef& out : outputs) graph_.outputs.push_back({position[out.node], out.output});
    return std::move(graph_);
  }

 private:
  absl::StatusOr<ValueRef> Find(const std::string& tensor) const {
    const ValueRef ref = RefOf(tensor, index_);
    if (ref.node >= 0) return ref;
    return absl::InvalidArgumentError(absl::StrCat("the graph has no tensor ", Quoted(tensor)));
  }

  // The node that stands for a fed tensor. One that computes it, for other signatures, becomes an
  // input itself, unless it has other outputs.
  std::string Feed(ValueRef ref, const TensorType& type) {
    Node& node = graph_.mutable_node(ref.node);
    const bool placeholder = node.op->name == "Input" || node.op->name == "PlaceholderWithDefault";
    if (placeholder || node.num_outputs == 1) {
      node.op = FindOp("Input");
      node.inputs.clear();
      if (placeholder) return node.name;
      node.subgraphs.clear();
      node.control_inputs.clear();
      SetInput(type, &node);
      return node.name;
    }
    Node input;
    input.op = FindOp("Input");
    input.name = absl::StrCat(node.name, "__", ref.output);
    while (index_.count(input.name) != 0) input.name += "_";
    SetInput(type, &input);
    std::string name = input.name;
    const int added = graph_.Add(std::move(input));
    index_[name] = added;
    moved_[ref] = {added, 0};
    return name;
  }

  static void SetInput(const TensorType& type, Node* node) {
    node->attrs = {};
    node->attrs.Set("dtype", type.dtype);
    node->attrs.Set("shape", type.shape);
  }

  ValueRef MovedTo(ValueRef ref) const {
    const auto found = moved_.find(ref);
    return found == moved_.end() ? ref : found->second;
  }

  absl::Status Rewire(std::vector<int>* position) {
    for (Node& node : graph_.mutable_nodes()) {
      for (ValueRef& in : node.inputs) in = MovedTo(in);
    }
    if (SortTopologically(&graph_, position)) return absl::OkStatus();
    return absl::InternalError("feeding tensors left a cycle");
  }

  Graph graph_;
  std::map<std::string, int> index_;
  std::map<ValueRef, ValueRef> moved_;
};

// Freezing leaves such a placeholder for each table or variable outside of what it froze.
absl::Status HandlePlaceholder(const Graph& graph, int placeholder,
                               const std::vector<bool>& needed) {
  const Node& node = graph.node(placeholder);
  std::string reader;
  for (int i = placeholder + 1; i < graph.size() && reader.empty(); ++i) {
    const Node& user = graph.node(i);
    const bool reads = std::any_of(user.inputs.begin(), user.inputs.end(),
                                   [&](const ValueRef& in) { return in.node == placeholder; });
    if (!needed[i] || !reads) continue;
    const std::string foreign = user.attrs.String("tensorflow_op");
    reader = absl::StrCat(Quoted(user.name), " (",
                          foreign.empty() ? user.op->name : Escaped(foreign), ") reads");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("placeholder ", Quoted(node.name), " is a ", DTypeName(node.attrs.Type("dtype")),
                   ", which no request can bring, and ", reader.empty() ? "an output is" : reader,
                   " it: freezing left it in the place of a lookup table or variable; serve the "
                   "SavedModel that it was made of instead, or freeze that with 'floectl freeze', "
                   "or choose inputs and outputs that do not need a table ('Lookup tables' in "
                   "docs/serving.md)"));
}

// A placeholder that the outputs need but nobody feeds, or can feed.
absl::Status CheckFed(const Graph& graph) {
  std::vector<bool> needed(graph.size(), false), fed(graph.size(), false);
  for (const ValueRef& out : graph.outputs) needed[out.node] = true;
  for (int input : graph.inputs) fed[input] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    if (graph.node(i).op->name == "Input" && IsHandle(graph.node(i).attrs.Type("dtype")))
      return HandlePlaceholder(graph, i, needed);
    if (graph.node(i).op->name == "Input" && !fed[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the outputs need placeholder ", Quoted(graph.node(i).name),
                       ", which is not an input of the signature and has no default; add it to "
                       "signature.inputs or to placeholder_defaults"));
    }
    for (const ValueRef& in : graph.node(i).inputs) needed[in.node] = true;
  }
  return absl::OkStatus();
}

// The nodes that the signatures fetch; names the graph does not have are reported when a signature
// is compiled.
std::vector<int> FetchedNodes(const Graph& graph, const std::vector<SignatureDef>& signatures) {
  const std::map<std::string, int> index = IndexByName(graph);
  std::vector<int> nodes;
  for (const SignatureDef& signature : signatures) {
    for (const SignatureTensor& output : signature.outputs) {
      const auto found = index.find(output.tensor_name.substr(0, output.tensor_name.rfind(':')));
      if (found != index.end()) nodes.push_back(found->second);
    }
  }
  return nodes;
}

// By node: whether an output of the signature needs it.
std::vector<bool> NeededBy(const Graph& graph, const SignatureDef& def) {
  std::vector<bool> needed(graph.size(), false);
  for (int node : FetchedNodes(graph, {def})) needed[node] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    for (const ValueRef& in : graph.node(i).inputs) needed[in.node] = true;
    for (int control : graph.node(i).control_inputs) needed[control] = true;
  }
  return needed;
}

// Kernels and constants that no other signature holds: they are shared where they are equal.
size_t UnseenBytes(const CompiledSignature& compiled, std::set<const void*>* seen) {
  if (!seen->insert(&compiled).second) return 0;
  size_t bytes = 0;
  for (int i = 0; i < compiled.graph().size(); ++i) {
    const Node& node = compiled.graph().node(i);
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (node.op->name == "Const" && value != nullptr && seen->insert(value->data()).second)
      bytes += HeldBytes(*value);
    const Kernel* const kernel = compiled.kernel(i);
    if (kernel != nullptr && seen->insert(kernel).second) bytes += kernel->PackedBytes();
    for (const auto& inner : compiled.subprograms(i)) bytes += UnseenBytes(*inner, seen);
  }
  return bytes;
}

// Weights on a device that no other signature of the model holds.
int64_t UnseenDeviceBytes(const CompiledSignature& compiled, std::set<const void*>* seen) {
  int64_t bytes = 0;
  for (int i = 0; i < compiled.graph().size(); ++i) {
    for (const auto& inner : compiled.subprograms(i)) {
      const DeviceWeights* const weights = inner->on_device().get();
      if (weights != nullptr && seen->insert(weights).second)
        bytes += static_cast<int64_t>(weights->bytes());
      bytes += UnseenDeviceBytes(*inner, seen);
    }
  }
  return bytes;
}

// Those in branches and loops included, whose names begin with `where`.
void AddIslands(const CompiledSignature& compiled, const std::string& where,
                std::vector<IslandInfo>* islands) {
  for (int i = 0; i < compiled.graph().size(); ++i) {
    const Node& node = compiled.graph().node(i);
    for (size_t k = 0; k < compiled.subprograms(i).size(); ++k) {
      const CompiledSignature& inner = *compiled.subprograms(i)[k];
      if (node.op->name != "OnDevice") {
        AddIslands(inner, absl::StrCat(where, node.name, "/", SubgraphName(node, k), "/"), islands);
        continue;
      }
      IslandInfo island{.name = where + node.name, .by_library = inner.by_library()};
      for (int n = 0; n < inner.graph().size(); ++n) island.nodes += inner.kernel(n) != nullptr;
      islands->push_back(std::move(island));
    }
  }
}

// The transformed weights of a model take so many bytes together, or so many times those of its
// constants. A whole number, so that models of almost one size may share weights.
constexpr double kTransformedBytes = 56 << 20, kTransformedGrowth = 2;

// Constants of so many bytes are still in the last cache when the next run begins.
constexpr double kCachedBytes = 16 << 20;

void SizeTo(const Graph& graph, CompileOptions* options) {
  double bytes = 1;
  for (const Node& node : graph.nodes()) {
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (value != nullptr) bytes += static_cast<double>(value->bytes());
  }
  options->weights_stay_cached = bytes <= kCachedBytes;
  ConvOptions& conv = options->kernels.conv;
  conv.fft_growth = std::max(kTransformedGrowth, std::floor(kTransformedBytes / bytes));
  conv.weights_stay_cached = options->weights_stay_cached;
}

int FindKey(const std::vector<SignatureTensor>& tensors, std::string_view key) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].key == key) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int Signature::FindInput(std::string_view key) const { return FindKey(def_.inputs, key); }
int Signature::FindOutput(std::string_view key) const { return FindKey(def_.outputs, key); }

std::string Signature::NameOf(const CompiledSignature& variant) const {
  std::vector<std::string> more;
  for (const SignatureTensor& input : variant.signature().inputs)
    if (FindKey(default_variant().signature().inputs, input.key) < 0) more.push_back(input.key);
  return absl::StrCat(def_.name.empty() ? "serving_default" : def_.name,
                      more.empty() ? "" : " with " + QuotedList(more));
}

absl::StatusOr<const Signature::Variant*> Signature::Choose(
    absl::Span<const TensorView*> fed) const {
  bool off_default = false;
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const SignatureTensor& input = def_.inputs[i];
    if (kinds_[i] == Kind::kRequired && fed[i] == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(input.key), " is missing"));
    if (kinds_[i] == Kind::kOptional)
      off_default |= fed[i] != nullptr && !SameValue(*fed[i], input.default_value);
  }
  if (!off_default) return variants_.data();
  if (!refused_.ok())
    return Annotate(refused_, "optional inputs of this model can only take their default");
  const Variant& variant = variants_[1];
  for (const int i : variant.inputs)
    if (fed[i] == nullptr) fed[i] = &defaults_[i];
  return &variant;
}

void Signature::Classify(const Graph& graph) {
  const std::vector<bool> needed = NeededBy(graph, def_);
  const std::map<std::string, int> index = IndexByName(graph);
  for (const SignatureTensor& input : def_.inputs) {
    const int node = RefOf(input.tensor_name, index).node;
    const bool ignored = !input.default_value.valid() || (node >= 0 && !needed[node]);
    kinds_.push_back(!input.optional ? Kind::kRequired
                     : ignored       ? Kind::kIgnored
                                     : Kind::kOptional);
    defaults_.push_back(input.default_value.valid() ? input.default_value.view() : TensorView());
  }
}

absl::StatusOr<Signature::Variant> Signature::CompileVariant(Graph graph, bool with_optional,
                                                             const CompileOptions& options,
                                                             KernelCache* cache) const {
  Variant variant;
  SignatureDef def = def_;
  def.inputs.clear();
  std::vector<bool> taken;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    taken.push_back(kinds_[i] == Kind::kRequired ||
                    (with_optional && kinds_[i] == Kind::kOptional));
    if (!taken[i]) continue;
    variant.inputs.push_back(static_cast<int>(i));
    def.inputs.push_back(def_.inputs[i]);
  }
  FLOE_ASSIGN_OR_RETURN(Graph selected, Selection(std::move(graph)).Run(def_, taken));
  FLOE_RETURN_IF_ERROR(CheckFed(selected));
  FLOE_ASSIGN_OR_RETURN(variant.compiled, CompiledSignature::Compile(
                                              std::move(selected), std::move(def), options, cache));
  return variant;
}

absl::Status Signature::Compile(Graph graph, SignatureDef def, const CompileOptions& options,
                                KernelCache* cache) {
  def_ = std::move(def);
  Classify(graph);
  const bool any_optional = std::count(kinds_.begin(), kinds_.end(), Kind::kOptional) > 0;
  // Without another variant nothing else holds its constants, and passes can free what they
  // replace.
  Graph kept = any_optional ? graph : Graph();
  FLOE_ASSIGN_OR_RETURN(Variant defaults, CompileVariant(std::move(graph), false, options, cache));
  variants_.push_back(std::move(defaults));
  def_.outputs = variants_[0].compiled->signature().outputs;
  if (!any_optional) return absl::OkStatus();
  auto with_optional = CompileVariant(std::move(kept), true, options, cache);
  refused_ = with_optional.status();
  if (with_optional.ok()) variants_.push_back(*std::move(with_optional));
  return absl::OkStatus();
}

namespace {

// Names of nodes that have routes to choose from.
void AddChoices(const CompiledSignature& program, std::vector<std::string>* names) {
  for (int i = 0; i < program.graph().size(); ++i) {
    const Kernel* kernel = program.kernel(i);
    if (kernel != nullptr && !kernel->choice().offers.empty())
      names->push_back(program.graph().node(i).name);
    for (const auto& inner : program.subprograms(i)) AddChoices(*inner, names);
  }
}

// A route for a node that has no choice, or that the passes renamed, would change nothing.
absl::Status CheckRoutes(const Model& model, const std::map<std::string, std::string>& routes) {
  if (routes.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const auto& [key, signature] : model.signatures())
    for (const Signature::Variant& variant : signature.variants())
      AddChoices(*variant.compiled, &names);
  for (const auto& [node, route] : routes) {
    if (std::find(names.begin(), names.end(), node) != names.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("routes: no node ", Quoted(node), " has routes to choose from; nearest: ",
                     QuotedList(NearestNames(node, names)), "; all: ", QuotedList(names)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Model>> Model::Create(Source source,
                                                           const CompileOptions& options) {
  const DefaultBudget budget(options.limits);
  return CatchOutOfMemory([&] { return CreateWithin(std::move(source), options); });
}

absl::StatusOr<std::shared_ptr<const Model>> Model::CreateWithin(Source source,
                                                                 CompileOptions options) {
  SizeTo(source.graph, &options);
  auto model = std::make_shared<Model>();
  model->info_ = std::move(source.info);
  FLOE_RETURN_IF_ERROR(LoadTables(
      &source.graph,
      {source.init_nodes, source.asset_directory, FetchedNodes(source.graph, source.signatures)},
      options.kernels));
  model->left_out_ = std::move(source.left_out);
  const bool several = source.signatures.size() + model->left_out_.size() > 1;
  KernelCache cache;
  for (SignatureDef& def : source.signatures) {
    Signature signature;
    const std::string name = def.name;
    const bool last = &def == &source.signatures.back();
    const absl::Status compiled = signature.Compile(
        last ? std::move(source.graph) : Graph(source.graph), std::move(def), options, &cache);
    if (compiled.ok()) {
      model->signatures_[name] = std::move(signature);
      continue;
    }
    // What the file has for other purposes is no reason to refuse the rest of it.
    const bool of_signature = absl::IsUnimplemented(compiled) || absl::IsInvalidArgument(compiled);
    if (!several || !of_signature) return compiled;
    model->left_out_[name] = compiled;
  }
  if (model->signatures_.empty()) {
    const auto usual = model->left_out_.find("serving_default");
    const auto& [name, why] = usual != model->left_out_.end() ? *usual : *model->left_out_.begin();
    return Annotate(why, absl::StrCat("signature ", Quoted(name)));
  }
  FLOE_RETURN_IF_ERROR(CheckRoutes(*model, options.kernels.routes));
  return model;
}

const Signature* Model::Find(std::string_view name) const {
  const auto found = signatures_.find(name.empty() ? std::string_view("serving_default") : name);
  return found == signatures_.end() ? nullptr : &found->second;
}

size_t Model::weight_bytes() const {
  std::set<const void*> seen;
  size_t bytes = 0;
  for (const auto& [name, signature] : signatures_) {
    const CompiledSignature& variant = signature.default_variant();
    bytes += signatures_.size() == 1 ? variant.weight_bytes() : UnseenBytes(variant, &seen);
  }
  return bytes;
}

int64_t Model::device_bytes() const {
  std::set<const void*> seen;
  int64_t bytes = 0;
  for (const auto& [name, signature] : signatures_)
    for (const Signature::Variant& variant : signature.variants())
      bytes += UnseenDeviceBytes(*variant.compiled, &seen);
  return bytes;
}

std::vector<IslandInfo> Model::islands() const {
  std::vector<const CompiledSignature*> seen;
  std::vector<IslandInfo> islands;
  for (const auto& [name, signature] : signatures_) {
    for (const Signature::Variant& variant : signature.variants()) {
      const CompiledSignature& compiled = *variant.compiled;
      if (std::any_of(seen.begin(), seen.end(),
                      [&](const auto* other) { return other->SharesProgram(compiled); }))
        continue;
      seen.push_back(&compiled);
      AddIslands(compiled, "", &islands);
    }
  }
  return islands;
}

}  // namespace floe
