#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/tables.h"
#include "runtime/analyze.h"
#include "runtime/device_weights.h"
#include "runtime/evaluate.h"
#include "runtime/graph_key.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/unsupported.h"
#include "runtime/plan.h"
#include "runtime/predicate.h"
#include "runtime/use_libraries.h"

namespace floe {
namespace {

bool IsSource(const Node& node) { return node.op->name == "Input" || node.op->name == "Const"; }

}  // namespace

// Runs the passes, then makes a kernel for every node that does work. One class: the steps of one
// compilation, all of which write the program that is being made.
class Compiler {
 public:
  Compiler(Graph graph, SignatureDef signature, const CompileOptions& options, KernelCache* cache,
           bool subgraph)
      : compiled_(new CompiledSignature()), cache_(cache), subgraph_(subgraph) {
    compiled_->program_->graph = std::move(graph);
    compiled_->signature_ = std::move(signature);
    compiled_->options_ = options;
    compiled_->program_->weights_stay_cached = options.weights_stay_cached;
  }

  absl::StatusOr<std::shared_ptr<const CompiledSignature>> Run() {
    FLOE_RETURN_IF_ERROR(SpendVisits(graph().size() + 1));
    for (const SignatureTensor& input : compiled_->signature_.inputs) {
      FLOE_RETURN_IF_ERROR(
          Annotate(CheckType(input.type), absl::StrCat("input ", Quoted(input.key))));
      types_.push_back(input.type);
      const SymShape& shape = input.type.shape;
      compiled_->input_has_rows_.push_back(!shape.rank_known() ||
                                           (shape.rank() > 0 && !shape.dim(0).known()));
    }
    // What the file holds for other signatures goes; a subgraph has none.
    Prune(&graph(), /*keep_effects=*/subgraph_);
    // Routes are forced by the names of nodes, in which equal graphs may differ.
    const bool share = cache_ != nullptr && !subgraph_ && kernel_options().routes.empty();
    const std::string key = share ? SignatureKey() : "";
    if (const auto same = share ? cache_->FindSignature(key) : nullptr) return Share(*same);
    FLOE_RETURN_IF_ERROR(WithUnsupportedOfAllBodies(Prepare()));
    if (share) cache_->KeepSignature(key, compiled_);
    return compiled_;
  }

  // What stands for the graph when Run gave this error. It has no kernels.
  std::shared_ptr<const CompiledSignature> Refused(absl::Status why) {
    compiled_->refused_ = std::move(why);
    compiled_->program_->kernels.resize(graph().size());
    compiled_->program_->subprograms.resize(graph().size());
    return compiled_;
  }

 private:
  Graph& graph() { return compiled_->program_->graph; }
  const KernelOptions& kernel_options() const { return compiled_->options_.kernels; }

  std::string SignatureKey() {
    std::string key;
    for (const TensorType& type : types_)
      absl::StrAppend(&key, DTypeName(type.dtype), type.shape.ToString(), "|");
    return key + GraphKey(graph());
  }

  // Files have the same function under several names: Keras writes each as "serve" and as
  // "serving_default".
  std::shared_ptr<const CompiledSignature> Share(const CompiledSignature& same) {
    compiled_->program_ = same.program_;
    compiled_->weight_bytes_ = same.weight_bytes_;
    for (size_t k = 0; k < same.signature_.outputs.size(); ++k)
      compiled_->signature_.outputs[k].type = same.signature_.outputs[k].type;
    return compiled_;
  }

  absl::Status Prepare() {
    FLOE_RETURN_IF_ERROR(RunPasses());
    return MakeKernels();
  }

  // The first body that fails says nothing of the others.
  absl::Status WithUnsupportedOfAllBodies(absl::Status made) {
    if (!absl::IsUnimplemented(made) || !missing_.empty() || subgraph_) return made;
    for (const Node& node : graph().nodes()) AddUnsupportedInside(node, &missing_);
    return missing_.empty() ? made : UnsupportedNodes(missing_);
  }

  absl::Status RunPasses() {
    const std::optional<Placement>& islands = compiled_->options_.islands;
    return floe::RunPasses(&graph(),
                           {types_, kernel_options(), islands.has_value() ? &*islands : nullptr},
                           compiled_->options_.disabled_passes);
  }

  absl::Status MakeKernels() {
    // Shapes that a graph computes from its number of rows are known but for the rows.
    FLOE_ASSIGN_OR_RETURN(Analysis analysis, AnalyzeWithRows(graph(), types_, kernel_options()));
    for (size_t k = 0; k < graph().outputs.size(); ++k)
      compiled_->signature_.outputs[k].type = WithoutRows(analysis.at(graph().outputs[k]).type);
    compiled_->program_->kernels.resize(graph().size());
    compiled_->program_->subprograms.resize(graph().size());
    std::vector<int> readers = CountReaders();
    for (int i = 0; i < graph().size(); ++i) {
      NoteNode("preparing", graph().node(i));
      const absl::Status made = graph().node(i).subgraphs.empty()
                                    ? MakeKernelOf(i, InputsOf(graph().node(i), analysis))
                                    : CompileSubgraphs(i, PassedTypes(i, analysis));
      if (absl::IsUnimplemented(made)) {
        const size_t before = missing_.size();
        AddUnsupportedInside(graph().node(i), &missing_);
        if (missing_.size() == before)
          missing_.push_back({graph().node(i).name, std::string(made.message())});
      } else {
        FLOE_RETURN_IF_ERROR(AtNode(graph().node(i), made));
      }
      ReleasePacked(i, &readers, &analysis);
    }
    if (!missing_.empty()) return UnsupportedNodes(missing_);
    CountConstants(readers);
    return absl::OkStatus();
  }

  // Dims that follow from the rows are open, as those of inputs are.
  static TensorType WithoutRows(TensorType type) {
    for (int i = 0; type.shape.rank_known() && i < type.shape.rank(); ++i) {
      if (!type.shape.dim(i).concrete()) type.shape.set_dim(i, Dim::Unknown());
    }
    return type;
  }

  static std::vector<ValueInfo> InputsOf(const Node& node, const Analysis& analysis) {
    std::vector<ValueInfo> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueRef& in : node.inputs) inputs.push_back(analysis.at(in));
    return inputs;
  }

  absl::Status MakeKernelOf(int i, absl::Span<const ValueInfo> inputs) {
    const Node& node = graph().node(i);
    if (IsSource(node) || node.op->alias || node.op->name == "NoOp") return absl::OkStatus();
    std::shared_ptr<const Kernel>& kernel = compiled_->program_->kernels[i];
    // What an island holds beside the nodes that were placed there is known before a run: the
    // device computes none of it.
    KernelOptions options = kernel_options();
    if (options.device != kHostDevice && !CanCompute({node, inputs, options}))
      options.device = kHostDevice;
    if (cache_ == nullptr) {
      FLOE_ASSIGN_OR_RETURN(kernel, MakePaidKernel(node, inputs, options));
    } else {
      const KernelKey key = KeyOf(node, inputs, options);
      kernel = cache_->Find(key);
      if (kernel == nullptr) {
        FLOE_ASSIGN_OR_RETURN(kernel, ShareKernel(key, node, inputs, options));
        cache_->Keep(key, kernel, inputs);
      }
    }
    compiled_->weight_bytes_ += kernel->PackedBytes();
    return absl::OkStatus();
  }

  // The kernel of another model that has the same weights, where there is one.
  absl::StatusOr<std::shared_ptr<const Kernel>> ShareKernel(const KernelKey& key, const Node& node,
                                                            absl::Span<const ValueInfo> inputs,
                                                            const KernelOptions& options) {
    WeightStore* const weights = key.of_content ? compiled_->options_.weights.get() : nullptr;
    if (weights == nullptr) return MakePaidKernel(node, inputs, options);
    if (auto shared = weights->Find(key.hash)) return shared;
    FLOE_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> kernel,
                          MakePaidKernel(node, inputs, options));
    if (kernel->PackedBytes() == 0) return kernel;
    return weights->Add(key.hash, std::move(kernel));
  }

  // Holds its share of the memory.
  absl::StatusOr<std::shared_ptr<const Kernel>> MakePaidKernel(const Node& node,
                                                               absl::Span<const ValueInfo> inputs,
                                                               const KernelOptions& options) const {
    FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeKernel(node, inputs, options));
    FLOE_ASSIGN_OR_RETURN(MemoryShare share,
                          TakeMemory(static_cast<int64_t>(kernel->PackedBytes())));
    if (share.bytes() == 0) return kernel;
    struct Paid {
      MemoryShare share;
      std::unique_ptr<Kernel> kernel;
    };
    const auto paid = std::make_shared<Paid>();
    paid->share = std::move(share);
    paid->kernel = std::move(kernel);
    return std::shared_ptr<const Kernel>(paid, paid->kernel.get());
  }

  // What the node's subgraphs are given, whatever the plan. Islands, and what may have islands
  // inside, are compiled for the shapes that are known; else shapes stay open.
  std::vector<TensorType> PassedTypes(int i, const Analysis& analysis) {
    const Node& node = graph().node(i);
    const bool with_shapes = node.op->name == "OnDevice" || compiled_->options_.islands.has_value();
    // What a loop gives has the types that its variables have in every iteration.
    std::vector<ValueInfo> values =
        node.op->name == "While" ? analysis.values[i] : InputsOf(node, analysis);
    if (HasPredicate(node)) values.erase(values.begin());
    std::vector<TensorType> types;
    for (const ValueInfo& value : values) {
      types.push_back(TensorType{value.type.dtype});
      if (with_shapes) types.back().shape = WithoutRows(value.type).shape;
    }
    return types;
  }

  CompileOptions OptionsInside(const Node& node) const {
    CompileOptions options = compiled_->options_;
    if (node.op->name != "OnDevice") return options;
    if (options.islands.has_value()) options.kernels.device = options.islands->device;
    options.islands.reset();
    return options;
  }

  // What an island needs to run on its device, and on the host when the device fails. `body`: as
  // no pass for a device has seen it.
  absl::Status EquipIsland(const Graph& body, const SignatureDef& signature,
                           const CompiledSignature* island) {
    const std::optional<Placement>& islands = compiled_->options_.islands;
    if (!islands.has_value() || islands->on == nullptr || !island->refused().ok())
      return absl::OkStatus();
    const bool on_host = islands->on_error == OnDeviceError::kCpu;
    if (on_host) {
      CompileOptions options = compiled_->options_;
      options.islands.reset();
      FLOE_ASSIGN_OR_RETURN(island->program_->on_host,
                            CompiledSignature::CompileSubgraph(body, signature, options, cache_));
      compiled_->weight_bytes_ += island->program_->on_host->weight_bytes();
    }
    // Of a device that is lost, the host computes all.
    const absl::Status used = UseLibraries(islands->on, island->program_.get());
    if (on_host && absl::IsUnavailable(used)) return absl::OkStatus();
    FLOE_RETURN_IF_ERROR(used);
    auto uploaded =
        DeviceWeights::Upload(*island->program_, islands->on, compiled_->options_.weights.get());
    if (on_host && absl::IsUnavailable(uploaded.status())) return absl::OkStatus();
    FLOE_ASSIGN_OR_RETURN(island->program_->on_device, std::move(uploaded));
    return absl::OkStatus();
  }

  absl::Status CompileSubgraphs(int i, const std::vector<TensorType>& passed) {
    Node& node = graph().mutable_node(i);
    for (auto& branch : node.subgraphs) {
      SignatureDef signature;
      for (size_t k = 0; k < passed.size(); ++k) {
        SignatureTensor input{.key = absl::StrCat("input ", k),
                              .tensor_name = branch->node(branch->inputs[k]).name};
        input.type = passed[k];  // one program serves every plan of the caller
        signature.inputs.push_back(std::move(input));
      }
      signature.outputs.resize(branch->outputs.size());
      FLOE_ASSIGN_OR_RETURN(auto compiled, CompiledSignature::CompileSubgraph(
                                               *branch, signature, OptionsInside(node), cache_));
      if (node.op->name == "OnDevice")
        FLOE_RETURN_IF_ERROR(EquipIsland(*branch, signature, compiled.get()));
      compiled_->weight_bytes_ += compiled->weight_bytes();
      // Plans of this graph look at the subgraph as it runs.
      branch = std::shared_ptr<const Graph>(compiled->program_, &compiled->program_->graph);
      compiled_->program_->subprograms[i].push_back(std::move(compiled));
    }
    return absl::OkStatus();
  }

  // By node: inputs and outputs that show its values.
  std::vector<int> CountReaders() {
    std::vector<int> readers(graph().size(), 0);
    for (const ValueRef& out : graph().outputs) ++readers[out.node];
    for (const Node& node : graph().nodes())
      for (const ValueRef& in : node.inputs) ++readers[in.node];
    return readers;
  }

  // Constants that every reader has packed keep only their type. Their bytes are given back at
  // once, so that a model is not in memory twice while it is loaded.
  void ReleasePacked(int i, std::vector<int>* readers, Analysis* analysis) {
    const Kernel* const kernel = compiled_->program_->kernels[i].get();
    const std::vector<ValueRef>& inputs = graph().node(i).inputs;
    for (size_t k = 0; kernel != nullptr && k < inputs.size(); ++k) {
      const int source = inputs[k].node;
      if (kernel->NeedsInput(static_cast<int>(k)) || --(*readers)[source] > 0) continue;
      ReleaseConstant(source);
      for (ValueInfo& value : analysis->values[source]) value.constant = Tensor();
    }
  }

  void ReleaseConstant(int i) {
    Node& node = graph().mutable_node(i);
    const Tensor* const value = node.attrs.Find<Tensor>("value");
    if (node.op->name != "Const" || value == nullptr) return;
    node.attrs.Set("shape", SymShape(value->shape()));
    node.attrs.Erase("value");
  }

  void CountConstants(const std::vector<int>& readers) {
    for (int i = 0; i < graph().size(); ++i) {
      if (readers[i] == 0) ReleaseConstant(i);
      const Tensor* const value = graph().node(i).attrs.Find<Tensor>("value");
      if (graph().node(i).op->name == "Const" && value != nullptr)
        compiled_->weight_bytes_ += HeldBytes(*value);
    }
  }

  std::shared_ptr<CompiledSignature> compiled_;
  KernelCache* cache_;
  const bool subgraph_;
  std::vector<TensorType> types_;
  std::vector<UnsupportedNode> missing_;
};

absl::StatusOr<std::shared_ptr<const CompiledSignature>> CompiledSignature::Compile(
    Graph graph, SignatureDef signature, const CompileOptions& options, KernelCache* cache) {
  return Compiler(std::move(graph), std::move(signature), options, cache, false).Run();
}

absl::StatusOr<std::shared_ptr<const CompiledSignature>> CompiledSignature::CompileSubgraph(
    const Graph& graph, SignatureDef signature, const CompileOptions& options, KernelCache* cache) {
  auto compiled = Compiler(graph, signature, options, cache, true).Run();
  const absl::Status& status = compiled.status();
  // Ops without a kernel are reported at load, whatever branch they are in.
  if (status.ok() || !IsErrorOfRun(status) || absl::IsUnimplemented(status)) return compiled;
  return Compiler(graph, std::move(signature), options, cache, true).Refused(status);
}

}  // namespace floe
