#include "model/ops/conv_chain.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/check_inputs.h"
#include "model/nested_attrs.h"
#include "model/op_def.h"
#include "model/ops/conv_nd.h"
#include "model/ops/op_util.h"

namespace floe {
namespace ops {
namespace {

constexpr char kDepthwise[] = "depthwise", kStages[] = "stages";

}  // namespace

bool ConvStage::depthwise() const { return node.name == kDepthwise; }

std::vector<ConvStage> ConvStagesOf(const Node& chain) {
  std::vector<ConvStage> stages;
  int next = 1;
  for (const std::string& name : chain.attrs.Get<std::vector<std::string>>(kStages, {})) {
    ConvStage stage;
    stage.node.name = name;
    stage.node.op = FindOp(name == kDepthwise ? "DepthwiseConv2dNative" : "Conv2D");
    stage.node.attrs = AttrsUnder(chain.attrs, name);
    stage.first_input = next;
    stage.epilogue = EpilogueOf(stage.node.attrs);
    stage.inputs = 1 + stage.epilogue.inputs();
    for (int* input : {&stage.epilogue.bias, &stage.epilogue.residual})
      if (*input >= 0) *input += next - 1;  // input 1 of its own is the filter
    next += stage.inputs;
    stages.push_back(std::move(stage));
  }
  return stages;
}

void AppendConvStage(const std::string& name, const Node& stage, Node* chain) {
  auto names = chain->attrs.Get<std::vector<std::string>>(kStages, {});
  names.push_back(name);
  chain->attrs.Set(kStages, std::move(names));
  SetAttrsUnder(name, stage.attrs, &chain->attrs);
}

}  // namespace ops

namespace {

// Calls visit(stage, inputs, output) for each stage, where inputs[0] is the output before; returns
// the last output.
template <class Visit>
absl::StatusOr<TensorType> Walk(const Node& chain, absl::Span<const ValueInfo> inputs,
                                const Visit& visit) {
  ValueInfo image;
  image.type = inputs[0].type;
  int used = 1;
  for (const ops::ConvStage& stage : ops::ConvStagesOf(chain)) {
    used += stage.inputs;
    if (used > static_cast<int>(inputs.size())) break;
    std::vector<ValueInfo> own = {image};
    for (int i = 0; i < stage.inputs; ++i) own.push_back(inputs[stage.first_input + i]);
    FLOE_ASSIGN_OR_RETURN(const Types types, InferChecked(stage.node, own));
    visit(stage, own, types[0]);
    image.type = types[0];
  }
  if (used == static_cast<int>(inputs.size())) return image.type;
  return Bad(absl::StrCat("has ", inputs.size(), " inputs, its stages read ", used));
}

absl::StatusOr<Types> Infer(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const TensorType out,
                        Walk(c.node, c.inputs, [](const auto&, const auto&, const auto&) {}));
  return Types{out};
}

// Only the last convolution may add a residual.
RowMark ConvChainRows(const RowContext& c) {
  const std::vector<ops::ConvStage> stages = ops::ConvStagesOf(c.node);
  return ops::ConvRows(c, stages.empty() ? -1 : stages.back().epilogue.residual);
}

double Flops(const Node& node, absl::Span<const TensorType> in, absl::Span<const TensorType>,
             int64_t rows) {
  std::vector<ValueInfo> inputs(in.size());
  for (size_t i = 0; i < in.size(); ++i) inputs[i].type = in[i];
  double flops = 0;
  const auto add = [&](const ops::ConvStage& stage, const std::vector<ValueInfo>& own,
                       const TensorType& out) {
    std::vector<TensorType> types;
    types.reserve(own.size());
    for (const ValueInfo& value : own) types.push_back(value.type);
    flops += stage.node.op->flops(stage.node, types, {out}, rows);
  };
  return Walk(node, inputs, add).ok() ? flops : 0;
}

const OpRegistrar kConvChain({.name = "ConvChain",
                              .min_inputs = 3,
                              .max_inputs = 9,
                              .infer = Infer,
                              .rows = ConvChainRows,
                              .flops = Flops,
                              .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
