#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/work_note.h"
#include "runtime/passes/passes.h"

namespace floe {
namespace {

using Rewrite = void (*)(Graph*);
template <Rewrite kRewrite>
absl::Status Always(Graph* graph, const PassContext&) {
  kRewrite(graph);
  return absl::OkStatus();
}
using TypedRewrite = absl::Status (*)(Graph*, absl::Span<const TensorType>, const KernelOptions&);
template <TypedRewrite kRewrite>
absl::Status Typed(Graph* graph, const PassContext& context) {
  return kRewrite(graph, context.inputs, context.kernels);
}
absl::Status Epilogues(Graph* graph, const PassContext& context) {
  FuseEpilogues(graph, context.inputs, context.kernels);
  return absl::OkStatus();
}
absl::Status Supported(Graph* graph, const PassContext&) { return CheckSupported(*graph); }
absl::Status Structure(Graph* graph, const PassContext&) { return StructureConditionals(graph); }
absl::Status Dilations(Graph* graph, const PassContext&) { return FoldDilations(graph); }
absl::Status Pairs(Graph* graph, const PassContext& context) {
  if (!KernelDTypes("RecurrentPair", context.kernels.device).empty()) PairRecurrent(graph);
  return absl::OkStatus();
}
absl::Status Islands(Graph* graph, const PassContext& context) {
  if (context.islands == nullptr) return absl::OkStatus();
  return PlaceOnDevice(graph, context.inputs, context.kernels, *context.islands);
}
void PruneAll(Graph* graph) { Prune(graph); }

constexpr Pass kPasses[] = {
    {"channels_last", Always<PutChannelsLast>, /*needed=*/true},
    {"fold_constants", Typed<FoldConstants>},
    {"prune", Always<PruneAll>},
    {"check_supported", Supported, /*needed=*/true},
    {"structure_conditionals", Structure, /*needed=*/true},
    {"remove_identities", Always<RemoveIdentities>},
    {"fold_dilations", Dilations},
    {"specialize_subgraphs", Always<SpecializeSubgraphs>},
    {"hoist_invariants", Typed<HoistInvariants>},
    {"fuse_recurrent", Typed<FuseRecurrent>},
    {"fold_pads", Always<FoldPads>},
    {"prune", Always<PruneAll>},
    {"move_transposes", Typed<MoveTransposes>},
    {"algebraic_simplification", Typed<SimplifyAlgebra>},
    {"common_subexpressions", Always<MergeCommonSubexpressions>},
    {"nest_concats", Always<NestConcats>},
    {"fold_pads", Always<FoldPads>},
    {"multiply_einsums", Typed<MultiplyEinsums>},
    {"fuse_layer_norms", Typed<FuseLayerNorms>},
    {"fuse_gelu", Typed<FuseGelu>},
    {"fuse_attention", Typed<FuseAttention>},
    {"fuse_suppressions", Typed<FuseSuppressions>},
    {"fuse_word_lookups", Always<FuseWordLookups>},
    {"fuse_embedding_bags", Typed<FuseEmbeddingBags>},
    {"sink_reshapes", Typed<SinkReshapes>},
    {"fold_batch_norms", Always<FoldBatchNorms>},
    {"fuse_epilogues", Epilogues},
    {"prune", Always<PruneAll>},
    // What follows makes nodes for one device. An island is compiled as a graph of its own, with
    // what its device computes.
    {"place_on_device", Islands},
    {"pair_recurrent", Pairs},
    {"fuse_conv_chains", Typed<FuseConvChains>},
    {"prune", Always<PruneAll>},
    {"fuse_elementwise", Typed<FuseElementwise>},
    {"prune", Always<PruneAll>},
};

bool Names(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::Span<const Pass> AllPasses() { return kPasses; }

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    if (!pass.needed && !Names(names, pass.name)) names.emplace_back(pass.name);
  }
  return names;
}

absl::Status CheckPassNames(const std::vector<std::string>& names) {
  std::vector<std::string> known = PassNames();
  known.emplace_back("all");
  for (const std::string& name : names) {
    if (!Names(known, name.c_str())) {
      return absl::InvalidArgumentError(
          absl::StrCat("no pass '", name, "' can be turned off; use ", absl::StrJoin(known, ", ")));
    }
  }
  return absl::OkStatus();
}

absl::Status RunPasses(Graph* graph, const PassContext& context,
                       const std::vector<std::string>& disabled) {
  FLOE_RETURN_IF_ERROR(CheckPassNames(disabled));
  const bool all = Names(disabled, "all");
  for (const Pass& pass : kPasses) {
    if (!pass.needed && (all || Names(disabled, pass.name))) continue;
    if (WorkNote* const note = WorkNote::Current()) note->Do(pass.name);
    FLOE_RETURN_IF_ERROR(pass.run(graph, context));
  }
  return absl::OkStatus();
}

}  // namespace floe
