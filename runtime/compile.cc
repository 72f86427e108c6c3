#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/attrs_key.h"
#include "model/tables.h"
#include "runtime/analyze.h"
#include "runtime/evaluate.h"
#include "runtime/graph_key.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/unsupported.h"
#include "runtime/plan.h"

namespace floe {
namespace {

bool IsSource(const Node& node) { return node.op->name == "Input" || node.op->name == "Const"; }

// Two nodes with equal keys may share a kernel: same op, attributes, input dtypes and constant
// inputs. A stateful node shares it only with itself, in another signature: two random ops of equal
// seeds each draw the same numbers.
std::string KernelKey(const Node& node, absl::Span<const ValueInfo> inputs,
                      const KernelOptions& options) {
  std::string key = node.op->name;
  for (const ValueInfo& v : inputs) {
    absl::StrAppend(&key, "|", DTypeName(v.type.dtype), v.type.shape.ToString());
    if (v.constant.valid())
      absl::StrAppend(&key, "@", reinterpret_cast<uintptr_t>(v.constant.data()),
                      v.constant.shape().ToString());
  }
  absl::StrAppend(&key, "|", AttrsKey(node.attrs));
  if (node.op->stateful) absl::StrAppend(&key, "|", node.name);
  const auto forced = options.routes.find(node.name);
  if (forced != options.routes.end()) absl::StrAppend(&key, "|route ", forced->second);
  return key;
}

}  // namespace

// Runs the passes, then makes a kernel for every node that does work.
class Compiler {
 public:
  Compiler(Graph graph, SignatureDef signature, const CompileOptions& options, KernelCache* cache,
           bool subgraph)
      : compiled_(new CompiledSignature()), cache_(cache), subgraph_(subgraph) {
    compiled_->program_->graph = std::move(graph);
    compiled_->signature_ = std::move(signature);
    compiled_->options_ = options;
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
    ReleaseConstants();
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
    return floe::RunPasses(&graph(), {types_, kernel_options()},
                           compiled_->options_.disabled_passes);
  }

  absl::Status MakeKernels() {
    FLOE_ASSIGN_OR_RETURN(const Analysis analysis, AnalyzeTypes(graph(), types_, kernel_options()));
    for (size_t k = 0; k < graph().outputs.size(); ++k)
      compiled_->signature_.outputs[k].type = analysis.at(graph().outputs[k]).type;
    compiled_->program_->kernels.resize(graph().size());
    compiled_->program_->subprograms.resize(graph().size());
    for (int i = 0; i < graph().size(); ++i) {
      std::vector<ValueInfo> infos;
      for (const ValueRef& in : graph().node(i).inputs) infos.push_back(analysis.at(in));
      NoteNode("preparing", graph().node(i));
      const absl::Status made = MakeKernelOf(i, infos);
      if (absl::IsUnimplemented(made)) {
        const size_t before = missing_.size();
        AddUnsupportedInside(graph().node(i), &missing_);
        if (missing_.size() == before)
          missing_.push_back({graph().node(i).name, std::string(made.message())});
      } else {
        FLOE_RETURN_IF_ERROR(AtNode(graph().node(i), made));
      }
    }
    return missing_.empty() ? absl::OkStatus() : UnsupportedNodes(missing_);
  }

  absl::Status MakeKernelOf(int i, const std::vector<ValueInfo>& inputs) {
    const Node& node = graph().node(i);
    if (IsSource(node) || node.op->alias || node.op->name == "NoOp") return absl::OkStatus();
    if (!node.subgraphs.empty()) return CompileSubgraphs(i, inputs);
    const std::string key = cache_ == nullptr ? "" : KernelKey(node, inputs, kernel_options());
    if (cache_ != nullptr) compiled_->program_->kernels[i] = cache_->Find(key);
    if (compiled_->program_->kernels[i] == nullptr) {
      FLOE_ASSIGN_OR_RETURN(compiled_->program_->kernels[i], MakePaidKernel(node, inputs));
      std::vector<Tensor> constants;
      constants.reserve(inputs.size());
      for (const ValueInfo& v : inputs) constants.push_back(v.constant);
      if (cache_ != nullptr)
        cache_->Keep(key, compiled_->program_->kernels[i], std::move(constants));
    }
    compiled_->weight_bytes_ += compiled_->program_->kernels[i]->PackedBytes();
    return absl::OkStatus();
  }

  // Holds its share of the memory.
  absl::StatusOr<std::shared_ptr<const Kernel>> MakePaidKernel(
      const Node& node, const std::vector<ValueInfo>& inputs) const {
    FLOE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                          MakeKernel(node, inputs, kernel_options()));
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

  absl::Status CompileSubgraphs(int i, const std::vector<ValueInfo>& inputs) {
    Node& node = graph().mutable_node(i);
    for (auto& branch : node.subgraphs) {
      SignatureDef signature;
      const size_t first = node.op->name == "While" ? 0 : 1;  // branches do not see their predicate
      for (size_t k = first; k < inputs.size(); ++k) {
        SignatureTensor input{.key = absl::StrCat("input ", k),
                              .tensor_name = branch->node(branch->inputs[k - first]).name};
        input.type.dtype =
            inputs[k].type.dtype;  // shapes stay open: one program serves every plan of the caller
        signature.inputs.push_back(std::move(input));
      }
      signature.outputs.resize(branch->outputs.size());
      FLOE_ASSIGN_OR_RETURN(auto compiled,
                            CompiledSignature::CompileSubgraph(*branch, std::move(signature),
                                                               compiled_->options_, cache_));
      compiled_->weight_bytes_ += compiled->weight_bytes();
      // Plans of this graph look at the subgraph as it runs.
      branch = std::shared_ptr<const Graph>(compiled->program_, &compiled->program_->graph);
      compiled_->program_->subprograms[i].push_back(std::move(compiled));
    }
    return absl::OkStatus();
  }

  // Constants that every user has packed keep only their type; the file's bytes are given back.
  void ReleaseConstants() {
    std::vector<bool> needed(graph().size(), false);
    for (const ValueRef& out : graph().outputs) needed[out.node] = true;
    for (int i = 0; i < graph().size(); ++i) {
      const Node& node = graph().node(i);
      const Kernel* kernel = compiled_->program_->kernels[i].get();
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (kernel == nullptr || kernel->NeedsInput(static_cast<int>(k)))
          needed[node.inputs[k].node] = true;
      }
    }
    for (int i = 0; i < graph().size(); ++i) {
      Node& node = graph().mutable_node(i);
      const Tensor* value = node.attrs.Find<Tensor>("value");
      if (node.op->name != "Const" || value == nullptr) continue;
      if (needed[i]) {
        compiled_->weight_bytes_ += HeldBytes(*value);
      } else {
        node.attrs.Set("shape", SymShape(value->shape()));
        node.attrs.Erase("value");
      }
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
