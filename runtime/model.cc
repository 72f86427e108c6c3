#include "runtime/model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/op_def.h"
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

// The graph with this signature's outputs selected. Inputs that are `taken` become inputs of the
// graph; optional ones that are not take their default.
absl::StatusOr<Graph> Select(const Graph& whole, const SignatureDef& def,
                             const std::vector<bool>& taken) {
  Graph graph = whole;
  const std::map<std::string, int> index = IndexByName(graph);
  const auto find = [&](const std::string& tensor) -> absl::StatusOr<ValueRef> {
    const size_t colon = tensor.rfind(':');
    const int output = colon == std::string::npos ? 0 : std::atoi(tensor.c_str() + colon + 1);
    const auto found = index.find(tensor.substr(0, colon));
    if (found == index.end())
      return absl::InvalidArgumentError(absl::StrCat("the graph has no tensor ", Quoted(tensor)));
    return ValueRef{found->second, output};
  };
  for (size_t k = 0; k < def.inputs.size(); ++k) {
    const SignatureTensor& input = def.inputs[k];
    FLOE_ASSIGN_OR_RETURN(const ValueRef ref, find(input.tensor_name));
    Node& node = graph.mutable_node(ref.node);
    if (taken[k]) {
      node.op = FindOp("Input");
      node.inputs.clear();
      graph.inputs.push_back(ref.node);
    } else if (input.default_value.valid()) {
      node.op = FindOp("Const");
      node.inputs.clear();
      node.attrs.Set("dtype", input.default_value.dtype());
      node.attrs.Set("value", input.default_value);
    }  // else a PlaceholderWithDefault, which passes its input on
  }
  for (const SignatureTensor& output : def.outputs) {
    FLOE_ASSIGN_OR_RETURN(const ValueRef ref, find(output.tensor_name));
    graph.outputs.push_back(ref);
  }
  return graph;
}

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
  return absl::InvalidArgumentError(absl::StrCat(
      "placeholder ", Quoted(node.name), " is a ", DTypeName(node.attrs.Type("dtype")),
      ", which no request can bring, and ", reader.empty() ? "an output is" : reader,
      " it: freezing left it in the place of a lookup table or variable; freeze the graph with the "
      "table and its initialiser inside it ('Lookup tables' in docs/serving.md), or choose inputs "
      "and outputs that do not need it"));
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

// There is a variant for each set of computed inputs that a request may feed; where they are more
// than this, only for none and for all of them.
constexpr int kMaxFreelyFed = 3;
constexpr int kMaxComputed = 63;

int FindKey(const std::vector<SignatureTensor>& tensors, std::string_view key) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].key == key) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int Signature::FindInput(std::string_view key) const { return FindKey(def_.inputs, key); }
int Signature::FindOutput(std::string_view key) const { return FindKey(def_.outputs, key); }

absl::StatusOr<const Signature::Variant*> Signature::Choose(
    absl::Span<const TensorView*> fed) const {
  bool live = false;
  uint64_t computed = 0, bit = 1;
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const SignatureTensor& input = def_.inputs[i];
    if (fed[i] == nullptr && !input.optional)
      return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(input.key), " is missing"));
    if (kinds_[i] == Kind::kConstant)
      live |= fed[i] != nullptr && !SameValue(*fed[i], input.default_value);
    if (kinds_[i] != Kind::kComputed) continue;
    if (fed[i] != nullptr) computed |= bit;
    bit <<= 1;
  }
  if (!live && computed == 0) return variants_.data();
  const auto variant = std::find_if(variants_.begin() + 1, variants_.end(),
                                    [&](const Variant& f) { return f.computed == computed; });
  if (variant == variants_.end()) return WhyNoVariant(computed);
  for (const int i : variant->inputs)
    if (fed[i] == nullptr) fed[i] = &defaults_[i];
  return &*variant;
}

absl::Status Signature::WhyNoVariant(uint64_t computed) const {
  for (const Refused& refused : refused_) {
    if (refused.computed == computed)
      return Annotate(refused.why, "optional inputs of this model can only take their default");
  }
  std::vector<std::string> keys;
  for (size_t i = 0; i < def_.inputs.size(); ++i)
    if (kinds_[i] == Kind::kComputed) keys.push_back(def_.inputs[i].key);
  return absl::InvalidArgumentError(
      absl::StrCat("of the inputs ", QuotedList(keys),
                   ", whose defaults the graph computes, a request feeds all or none"));
}

void Signature::Classify(const Graph& graph) {
  const std::vector<bool> needed = NeededBy(graph, def_);
  const std::map<std::string, int> index = IndexByName(graph);
  for (const SignatureTensor& input : def_.inputs) {
    const auto node = index.find(input.tensor_name.substr(0, input.tensor_name.rfind(':')));
    const bool ignored = node != index.end() && !needed[node->second];
    kinds_.push_back(!input.optional               ? Kind::kRequired
                     : ignored                     ? Kind::kIgnored
                     : input.default_value.valid() ? Kind::kConstant
                                                   : Kind::kComputed);
    defaults_.push_back(input.default_value.valid() ? input.default_value.view() : TensorView());
  }
}

absl::StatusOr<Signature::Variant> Signature::CompileVariant(const Graph& graph, bool live,
                                                             uint64_t computed,
                                                             const CompileOptions& options,
                                                             KernelCache* cache) const {
  Variant variant{.computed = computed};
  std::vector<bool> taken;
  SignatureDef def = def_;
  def.inputs.clear();
  uint64_t bit = 1;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    taken.push_back(kinds_[i] == Kind::kRequired || (live && kinds_[i] == Kind::kConstant));
    if (kinds_[i] == Kind::kComputed) {
      taken.back() = (computed & bit) != 0;
      bit <<= 1;
    }
    if (!taken.back()) continue;
    variant.inputs.push_back(static_cast<int>(i));
    def.inputs.push_back(def_.inputs[i]);
  }
  FLOE_ASSIGN_OR_RETURN(Graph selected, Select(graph, def_, taken));
  FLOE_RETURN_IF_ERROR(CheckFed(selected));
  FLOE_ASSIGN_OR_RETURN(variant.compiled, CompiledSignature::Compile(
                                              std::move(selected), std::move(def), options, cache));
  return variant;
}

absl::Status Signature::Compile(const Graph& graph, SignatureDef def, const CompileOptions& options,
                                KernelCache* cache) {
  def_ = std::move(def);
  Classify(graph);
  FLOE_ASSIGN_OR_RETURN(Variant defaults, CompileVariant(graph, false, 0, options, cache));
  variants_.push_back(std::move(defaults));
  def_.outputs = variants_[0].compiled->signature().outputs;

  const auto computed_inputs = std::count(kinds_.begin(), kinds_.end(), Kind::kComputed);
  if (computed_inputs > kMaxComputed) {
    return absl::UnimplementedError(absl::StrCat(
        "signature ", Quoted(def_.name), " has ", computed_inputs,
        " optional inputs whose defaults the graph computes; at most ", kMaxComputed, " can be"));
  }
  std::vector<uint64_t> sets;
  if (std::count(kinds_.begin(), kinds_.end(), Kind::kConstant) > 0) sets.push_back(0);
  const uint64_t all = (uint64_t{1} << computed_inputs) - 1;
  if (computed_inputs > kMaxFreelyFed) {
    sets.push_back(all);
  } else {
    for (uint64_t computed = 1; computed <= all; ++computed) sets.push_back(computed);
  }
  for (const uint64_t computed : sets) {
    if (absl::StatusOr<Variant> variant = CompileVariant(graph, true, computed, options, cache);
        variant.ok()) {
      variants_.push_back(*std::move(variant));
    } else {
      refused_.push_back({computed, variant.status()});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Model>> Model::Create(Source source,
                                                           const CompileOptions& options) {
  const DefaultBudget budget(options.limits);
  return CatchOutOfMemory([&] { return CreateWithin(std::move(source), options); });
}

absl::StatusOr<std::shared_ptr<const Model>> Model::CreateWithin(Source source,
                                                                 const CompileOptions& options) {
  auto model = std::make_shared<Model>();
  model->info_ = std::move(source.info);
  FLOE_RETURN_IF_ERROR(LoadTables(
      &source.graph,
      {source.init_nodes, source.asset_directory, FetchedNodes(source.graph, source.signatures)},
      options.kernels));
  KernelCache cache;
  for (SignatureDef& def : source.signatures) {
    Signature signature;
    FLOE_RETURN_IF_ERROR(signature.Compile(source.graph, std::move(def), options, &cache));
    model->signatures_[signature.def_.name] = std::move(signature);
  }
  return model;
}

const Signature* Model::Find(std::string_view name) const {
  const auto found = signatures_.find(name.empty() ? std::string_view("serving_default") : name);
  return found == signatures_.end() ? nullptr : &found->second;
}

size_t Model::weight_bytes() const {
  size_t bytes = 0;
  for (const auto& [name, signature] : signatures_)
    bytes += signature.default_variant().weight_bytes();
  return bytes;
}

}  // namespace floe
