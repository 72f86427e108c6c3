#include "model/ops/recurrent_pair.h"

#include "base/status.h"
#include "model/nested_attrs.h"
#include "model/op_def.h"
#include "model/ops/op_util.h"
#include "model/ops/recurrent.h"

namespace floe {
namespace ops {
namespace {

constexpr std::array<const char*, 2> kLayers = {"0", "1"};

}  // namespace

absl::StatusOr<std::array<PairedLayer, 2>> PairedLayersOf(const Node& pair) {
  std::array<PairedLayer, 2> layers;
  int next = 0;
  for (int k = 0; k < 2; ++k) {
    PairedLayer& layer = layers[k];
    layer.node.op = FindOp("FusedRecurrent");
    layer.node.num_outputs = PairedLayer::kOutputs;
    layer.node.attrs = AttrsUnder(pair.attrs, kLayers[k]);
    FLOE_ASSIGN_OR_RETURN(const RecurrentSpec spec, RecurrentSpec::FromAttrs(layer.node.attrs));
    layer.first_input = next;
    layer.inputs = spec.inputs();
    layer.first_output = k * PairedLayer::kOutputs;
    next += layer.inputs;
  }
  return layers;
}

Node PairRecurrent(const Node& first, const Node& second) {
  Node pair;
  pair.name = first.name;
  pair.op = FindOp("RecurrentPair");
  pair.num_outputs = 2 * PairedLayer::kOutputs;
  pair.inputs = first.inputs;
  pair.inputs.insert(pair.inputs.end(), second.inputs.begin(), second.inputs.end());
  SetAttrsUnder(kLayers[0], first.attrs, &pair.attrs);
  SetAttrsUnder(kLayers[1], second.attrs, &pair.attrs);
  return pair;
}

}  // namespace ops

namespace {

using ops::PairedLayer;

absl::StatusOr<Types> InferPair(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const auto layers, ops::PairedLayersOf(c.node));
  FLOE_RETURN_IF_ERROR(ops::ExpectInputs(c, layers[0].inputs + layers[1].inputs));
  Types types;
  for (const PairedLayer& layer : layers) {
    FLOE_ASSIGN_OR_RETURN(const Types own,
                          layer.node.op->infer({layer.node, layer.InputsOf(c.inputs)}));
    types.insert(types.end(), own.begin(), own.end());
  }
  return types;
}

// Where the layers differ, as when the rows of one are all the same, nothing is known of both.
RowMark PairRows(const RowContext& c) {
  const auto layers = ops::PairedLayersOf(c.node);
  if (!layers.ok() || c.outputs.size() != 6) return RowMark::kUnknown;
  RowMark marks[2];
  for (int k = 0; k < 2; ++k) {
    const PairedLayer& layer = (*layers)[k];
    marks[k] = layer.node.op->rows({layer.node, layer.InputsOf(c.marks), layer.InputsOf(c.inputs),
                                    layer.OutputsOf(c.outputs)});
  }
  return marks[0] == marks[1] ? marks[0] : ops::Lost(c);
}

double PairFlops(const Node& node, absl::Span<const TensorType> in,
                 absl::Span<const TensorType> out, int64_t rows) {
  const auto layers = ops::PairedLayersOf(node);
  double flops = 0;
  for (int k = 0; layers.ok() && k < 2; ++k) {
    const PairedLayer& layer = (*layers)[k];
    flops += layer.node.op->flops(layer.node, layer.InputsOf(in), layer.OutputsOf(out), rows);
  }
  return flops;
}

const OpRegistrar kRecurrentPair({.name = "RecurrentPair",
                                  .min_inputs = 8,
                                  .max_inputs = 16,
                                  .output_names = {"sequence_0", "h_0", "c_0", "sequence_1", "h_1",
                                                   "c_1"},
                                  .infer = InferPair,
                                  .rows = PairRows,
                                  .flops = PairFlops,
                                  .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
