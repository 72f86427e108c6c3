#include "runtime/model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/nearest.h"
#include "base/status.h"
#include "model/op_def.h"
#include "runtime/passes/load_tables.h"

namespace floe {
namespace {

bool SameValue(const TensorView& a, const Tensor& b) {
  return a.dtype == b.dtype() && a.shape == b.shape() && DTypeSize(a.dtype) != 0 &&
         (b.bytes() == 0 || std::memcmp(a.data, b.data(), b.bytes()) == 0);
}

// The graph with this signature's inputs and outputs selected. In the `live` form optional inputs
// are inputs; otherwise they take their default.
absl::StatusOr<Graph> Select(const Graph& whole, const SignatureDef& def, bool live,
                             std::vector<int>* input_of) {
  Graph graph = whole;
  std::map<std::string, int> index;
  for (int i = 0; i < graph.size(); ++i) index[graph.node(i).name] = i;
  const auto find = [&](const std::string& tensor) -> absl::StatusOr<ValueRef> {
    const size_t colon = tensor.rfind(':');
    const int output = colon == std::string::npos ? 0 : std::atoi(tensor.c_str() + colon + 1);
    const auto found = index.find(tensor.substr(0, colon));
    if (found == index.end())
      return absl::InvalidArgumentError(absl::StrCat("the graph has no tensor '", tensor, "'"));
    return ValueRef{found->second, output};
  };
  for (size_t k = 0; k < def.inputs.size(); ++k) {
    const SignatureTensor& input = def.inputs[k];
    FLOE_ASSIGN_OR_RETURN(const ValueRef ref, find(input.tensor_name));
    Node& node = graph.mutable_node(ref.node);
    if (live || !input.optional) {
      node.op = FindOp("Input");
      node.inputs.clear();
      graph.inputs.push_back(ref.node);
      input_of->push_back(static_cast<int>(k));
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

// A placeholder that the outputs need but nobody feeds.
absl::Status CheckFed(const Graph& graph) {
  std::vector<bool> needed(graph.size(), false), fed(graph.size(), false);
  for (const ValueRef& out : graph.outputs) needed[out.node] = true;
  for (int input : graph.inputs) fed[input] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    if (graph.node(i).op->name == "Input" && !fed[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the outputs need placeholder '", graph.node(i).name,
                       "', which is not an input of the signature and has no default; add it to "
                       "signature.inputs or to placeholder_defaults"));
    }
    for (const ValueRef& in : graph.node(i).inputs) needed[in.node] = true;
  }
  return absl::OkStatus();
}

// The nodes that the signatures fetch; names the graph does not have are reported when a signature
// is compiled.
std::vector<int> FetchedNodes(const Graph& graph, const std::vector<SignatureDef>& signatures) {
  std::map<std::string, int> index;
  for (int i = 0; i < graph.size(); ++i) index[graph.node(i).name] = i;
  std::vector<int> nodes;
  for (const SignatureDef& signature : signatures) {
    for (const SignatureTensor& output : signature.outputs) {
      const auto found = index.find(output.tensor_name.substr(0, output.tensor_name.rfind(':')));
      if (found != index.end()) nodes.push_back(found->second);
    }
  }
  return nodes;
}

absl::StatusOr<std::shared_ptr<const CompiledSignature>> CompileForm(
    const Graph& whole, const SignatureDef& def, bool live, const CompileOptions& options,
    KernelCache* cache, std::vector<int>* input_of) {
  FLOE_ASSIGN_OR_RETURN(Graph graph, Select(whole, def, live, input_of));
  FLOE_RETURN_IF_ERROR(CheckFed(graph));
  SignatureDef form = def;
  form.inputs.clear();
  for (int k : *input_of) form.inputs.push_back(def.inputs[k]);
  return CompiledSignature::Compile(std::move(graph), std::move(form), options, cache);
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

absl::StatusOr<const CompiledSignature*> Signature::Choose(
    absl::Span<const TensorView* const> fed, const std::vector<int>** input_of) const {
  bool live = false;
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const SignatureTensor& input = def_.inputs[i];
    if (fed[i] == nullptr && !input.optional)
      return absl::InvalidArgumentError(absl::StrCat("input '", input.key, "' is missing"));
    live |= fed[i] != nullptr && input.optional &&
            !(input.default_value.valid() && SameValue(*fed[i], input.default_value));
  }
  if (!live) {
    *input_of = &defaults_inputs_;
    return defaults_.get();
  }
  if (live_ == nullptr)
    return Annotate(why_not_live_, "optional inputs of this model can only take their default");
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    if (fed[i] == nullptr && !def_.inputs[i].default_value.valid()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", def_.inputs[i].key, "' must be fed when other optional inputs are"));
    }
  }
  *input_of = &live_inputs_;
  return live_.get();
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
  model->file_ = std::move(source.file);
  FLOE_RETURN_IF_ERROR(LoadTables(
      &source.graph,
      {source.init_nodes, source.asset_directory, FetchedNodes(source.graph, source.signatures)},
      options.kernels));
  KernelCache cache;
  for (SignatureDef& def : source.signatures) {
    Signature signature;
    const auto compiled =
        CompileForm(source.graph, def, false, options, &cache, &signature.defaults_inputs_);
    if (!compiled.ok()) return compiled.status();
    signature.defaults_ = *compiled;
    if (std::any_of(def.inputs.begin(), def.inputs.end(),
                    [](const SignatureTensor& t) { return t.optional; })) {
      auto live = CompileForm(source.graph, def, true, options, &cache, &signature.live_inputs_);
      if (live.ok()) {
        signature.live_ = *live;
      } else {
        signature.why_not_live_ = live.status();
      }
    }
    def.outputs = signature.defaults_->signature().outputs;
    signature.def_ = std::move(def);
    model->signatures_[signature.def_.name] = std::move(signature);
  }
  return model;
}

const Signature* Model::Find(std::string_view name) const {
  const auto found = signatures_.find(name.empty() ? std::string_view("serving_default") : name);
  return found == signatures_.end() ? nullptr : &found->second;
}

absl::Status Model::CheckFile() const {
  if (file_ == nullptr || !file_->damaged()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the file of model '", info_.name, "' version ", info_.version,
                   " was cut short, or can no longer be read, while it served; add the model as "
                   "another version"));
}

size_t Model::weight_bytes() const {
  size_t bytes = 0;
  for (const auto& [name, signature] : signatures_)
    bytes += signature.defaults_form().weight_bytes();
  return bytes;
}

}  // namespace floe
