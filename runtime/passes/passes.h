// Graph -> graph rewrites run once at load, before kernels are chosen. Each is a file of its own
// with a test, and one line of the list in registry.cc. Everything else follows from it: the
// order, the names, the switch that turns it off.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "model/effects.h"
#include "model/graph.h"
#include "runtime/passes/place_on_device.h"

namespace floe {

// What a pass may know beyond the graph.
struct PassContext {
  absl::Span<const TensorType> inputs;  // types of graph->inputs
  const KernelOptions& kernels;
  const Placement* islands = nullptr;  // null: nothing leaves the host
};

struct Pass {
  const char* name;
  absl::Status (*run)(Graph* graph, const PassContext& context);
  // It cannot be turned off: there are no kernels for what it replaces, or nothing else checks what
  // it checks.
  bool needed = false;
};

// In the order they run; one may stand there several times.
absl::Span<const Pass> AllPasses();
// The names that can be turned off, each once, in that order.
std::vector<std::string> PassNames();
// OK when every name is one of PassNames() or "all"; INVALID_ARGUMENT lists them otherwise.
absl::Status CheckPassNames(const std::vector<std::string>& names);

// Runs the passes on one graph, those named in `disabled` left out ("all": every one that may be).
// Subgraphs get theirs when they are compiled. Errors are those of the passes.
absl::Status RunPasses(Graph* graph, const PassContext& context,
                       const std::vector<std::string>& disabled);

// Keeps what the outputs need; inputs stay in any case. Control edges are followed, so that
// branches keep their pivots. `keep_effects`: nodes that run for their effect stay too; without it
// only those that an output waits for.
void Prune(Graph* graph, bool keep_effects = true);

// Image ops with channels in front (NCHW, NCDHW) become ops with channels last between two
// Transposes: there are no kernels for the others. They keep their names.
void PutChannelsLast(Graph* graph);

// Replaces nodes whose inputs are all constants by their values, computed by the kernels. A Switch
// on a constant predicate and the Merge behind it go away with the dead branch. `inputs`: types of
// graph->inputs. INVALID_ARGUMENT names the node when types contradict each other, or an output
// lies in a dead branch.
absl::Status FoldConstants(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options);

// UNIMPLEMENTED for nodes that floe has no meaning for, as runtime/passes/unsupported.h words it.
absl::Status CheckSupported(const Graph& graph);

// Rebuilds the Switch/Merge pairs of v1 `cond` as If nodes with subgraphs. UNIMPLEMENTED names the
// Switch or Merge that has no such form.
absl::Status StructureConditionals(Graph* graph);

// Uses of Identity and its like go to the original.
void RemoveIdentities(Graph* graph);

// Subgraphs get the constants they are given: branches all of them, loops those that no iteration
// changes, so that weights are packed at load. Loop variables that go iteration unchanged are not
// outputs any more, and those that nothing depends on are gone.
void SpecializeSubgraphs(Graph* graph);

// Floating-point values that a loop's condition or body computes from unchanged variables alone are
// computed once, in front of the loop. `inputs`: types of graph->inputs.
absl::Status HoistInvariants(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options);

// SpaceToBatchND -> convolution -> BatchToSpaceND becomes a dilated convolution, which keeps
// request rows apart.
absl::Status FoldDilations(Graph* graph);

// Loops over time that run an LSTM, a GRU or a SimpleRNN with constant weights become one
// FusedRecurrent node (model/ops/recurrent.h), within the rounding of sums in another order.
// `inputs`: types of graph->inputs.
absl::Status FuseRecurrent(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options);

// FusedRecurrent nodes that read one sequence, and do not wait for each other, become one
// RecurrentPair (model/ops/recurrent_pair.h).
void PairRecurrent(Graph* graph);

// Zeros that a Pad puts around a convolution's image become pads of the convolution, where it has
// none or explicit ones.
void FoldPads(Graph* graph);

// Transposes move past ops that do not care for the order of dims, where that leaves fewer, or
// leaves products to their epilogues. `inputs`: types of graph->inputs.
absl::Status MoveTransposes(Graph* graph, absl::Span<const TensorType> inputs,
                            const KernelOptions& options);

// Transposes of transposes become one or none, those that only move dims of 1 a Reshape. A Cast to
// the same type, a Pad of nothing, x + 0 and x * 1 of integers and their like give their input.
// x^2 and x^3 of float32 become multiplications, and a Conv2D with one input channel in each group
// DepthwiseConv2dNative. Squeeze, ExpandDims and Reshape are views and cost nothing, so chains of
// them stay. `inputs`: types of graph->inputs.
absl::Status SimplifyAlgebra(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options);

// Equal constants are one, and so are nodes of one op with equal attributes and inputs. Nodes with
// an effect, a state or subgraphs stay apart.
void MergeCommonSubexpressions(Graph* graph);

// A concatenation of values that another joins already takes that one in their place: layers that
// join all values before them, as in dense blocks, then copy none twice.
void NestConcats(Graph* graph);

// Einsum of a value and constant weights becomes BatchMatMul where it is one product. `inputs`:
// types of graph->inputs.
absl::Status MultiplyEinsums(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options);

// Layer normalisation along the last dim, written with two means or with FusedBatchNorm, becomes
// one node of LayerNorm, with the constants that scale and shift it. `inputs`: types of
// graph->inputs.
absl::Status FuseLayerNorms(Graph* graph, absl::Span<const TensorType> inputs,
                            const KernelOptions& options);

// The formula of Gelu, written with Erf, Erfc or Tanh, becomes one node of Gelu or GeluTanh;
// x * Tanh(Softplus(x)) one of Mish.
// `inputs`: types of graph->inputs.
absl::Status FuseGelu(Graph* graph, absl::Span<const TensorType> inputs,
                      const KernelOptions& options);

// Softmax between two products, with the scaling, the mask and the Transposes around them, becomes
// one node of Attention (model/ops/attention.h). `inputs`: types of graph->inputs.
absl::Status FuseAttention(Graph* graph, absl::Span<const TensorType> inputs,
                           const KernelOptions& options);

// NonMaxSuppression of the boxes whose scores are above a threshold, and the Gathers of what it
// chose, become FilteredNonMaxSuppression of all boxes and Gathers from all. `inputs`: types of
// graph->inputs.
absl::Status FuseSuppressions(Graph* graph, absl::Span<const TensorType> inputs,
                              const KernelOptions& options);

// StringSplitV2 of which only a constant table looks up the words becomes StringSplitLookup.
void FuseWordLookups(Graph* graph);

// Sum or Mean of the rows that a Gather takes from a float32 table becomes EmbeddingBag. `inputs`:
// types of graph->inputs.
absl::Status FuseEmbeddingBags(Graph* graph, absl::Span<const TensorType> inputs,
                               const KernelOptions& options);

// MatMul -> Reshape -> bias or activation becomes MatMul -> bias or activation -> Reshape.
// `inputs`: types of graph->inputs.
absl::Status SinkReshapes(Graph* graph, absl::Span<const TensorType> inputs,
                          const KernelOptions& options);

// A product with constant weights (MatMul, a convolution) whose channels are then multiplied or
// shifted by constants becomes one with other weights and one BiasAdd. FusedBatchNorm outside
// training does so, or the Mul, Sub, Add that frozen models have in its place.
void FoldBatchNorms(Graph* graph);

// MatMul, BatchMatMul or a convolution + BiasAdd/Add of a constant vector + activation becomes one
// node with an Epilogue, for Conv2D with an Add of another value of its shape too. `inputs`: types
// of graph->inputs.
void FuseEpilogues(Graph* graph, absl::Span<const TensorType> inputs, const KernelOptions& options);

// A pointwise convolution, the depthwise one behind it and a pointwise one behind that, with
// constant weights, become one ConvChain node (model/ops/conv_chain.h), with the same bits, where
// the target computes it. `inputs`: types of graph->inputs.
absl::Status FuseConvChains(Graph* graph, absl::Span<const TensorType> inputs,
                            const KernelOptions& options);

// Element-wise ops whose values only each other read become one FusedElementwise node
// (model/ops/fused_elementwise.h), with the same bits, where the target computes them as its steps;
// FusedBatchNorm outside training counts as three of them. `inputs`: types of graph->inputs.
absl::Status FuseElementwise(Graph* graph, absl::Span<const TensorType> inputs,
                             const KernelOptions& options);

}  // namespace floe
