#include "model/ops/fused_elementwise.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/ops/op_util.h"
#include "model/ops/time_major.h"

namespace floe {
namespace ops {

bool MayBeFused(const OpDef& op) {
  return op.rows == RowsElementwise && op.outputs == 1 && op.min_inputs == op.max_inputs &&
         op.max_inputs >= 1 && op.max_inputs <= kMaxStepInputs && !op.stateful && !op.effect;
}

absl::StatusOr<std::vector<FusedStep>> FusedStepsOf(const Node& node, int inputs) {
  const auto names = node.attrs.Get<std::vector<std::string>>("ops", {});
  const auto operands = node.attrs.Ints("operands");
  const auto alphas = node.attrs.Get<std::vector<float>>("alphas", {});
  const auto types = node.attrs.Get<std::vector<DType>>("types", {});
  if (names.empty() || names.size() > kMaxFusedSteps || alphas.size() != names.size() ||
      types.size() != names.size() || inputs > kMaxFusedInputs)
    return Bad(absl::StrCat("has ", names.size(), " steps and ", inputs, " inputs"));
  std::vector<FusedStep> steps;
  size_t next = 0;
  for (size_t s = 0; s < names.size(); ++s) {
    FusedStep step;
    step.node.name = node.name;
    step.node.op = FindOp(names[s]);
    if (step.node.op == nullptr || !MayBeFused(*step.node.op))
      return Bad(absl::StrCat("step ", s, " is '", names[s], "', which is not element-wise"));
    step.node.attrs.Set("alpha", alphas[s]);
    if (types[s] != DType::kInvalid) step.node.attrs.Set("DstT", types[s]);
    for (int k = 0; k < step.node.op->max_inputs; ++k, ++next) {
      const int64_t known = inputs + static_cast<int64_t>(s);
      if (next >= operands.size() || operands[next] < 0 || operands[next] >= known)
        return Bad(absl::StrCat("step ", s, " has no operand ", k));
      step.operands.push_back(static_cast<int>(operands[next]));
    }
    steps.push_back(std::move(step));
  }
  if (next != operands.size()) return Bad("has operands left over");
  return steps;
}

void SetFusedSteps(const std::vector<FusedStep>& steps, Attrs* attrs) {
  std::vector<std::string> names;
  std::vector<int64_t> operands;
  std::vector<float> alphas;
  std::vector<DType> types;
  for (const FusedStep& step : steps) {
    names.push_back(step.node.op->name);
    operands.insert(operands.end(), step.operands.begin(), step.operands.end());
    alphas.push_back(step.node.attrs.Float("alpha", 0.2f));
    types.push_back(step.node.attrs.Type("DstT"));
  }
  attrs->Set("ops", names);
  attrs->Set("operands", operands);
  attrs->Set("alphas", alphas);
  attrs->Set("types", types);
}

absl::StatusOr<Types> InferFusedSteps(const std::vector<FusedStep>& steps,
                                      absl::Span<const ValueInfo> inputs) {
  std::vector<ValueInfo> known;
  for (const ValueInfo& input : inputs) known.push_back({input.type, {}, {}});
  Types results;
  for (const FusedStep& step : steps) {
    std::vector<ValueInfo> in;
    for (int operand : step.operands) in.push_back(known[operand]);
    auto types = step.node.op->infer({step.node, in});
    if (!types.ok()) return Annotate(types.status(), absl::StrCat("step ", step.node.op->name));
    results.push_back((*types)[0]);
    known.push_back({(*types)[0], {}, {}});
  }
  return results;
}

}  // namespace ops

namespace {

using ops::FusedStep;

absl::StatusOr<Types> InferChain(const InferContext& c) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<FusedStep> steps,
                        ops::FusedStepsOf(c.node, c.num_inputs()));
  FLOE_ASSIGN_OR_RETURN(const Types types, ops::InferFusedSteps(steps, c.inputs));
  return Types{types.back()};
}

// Step by step, as if each were a node of its own.
RowMark ChainRows(const RowContext& c) {
  const auto steps = ops::FusedStepsOf(c.node, static_cast<int>(c.inputs.size()));
  if (!steps.ok()) return RowMark::kUnknown;
  const auto types = ops::InferFusedSteps(*steps, c.inputs);
  if (!types.ok()) return RowMark::kUnknown;
  std::vector<ValueInfo> infos(c.inputs.begin(), c.inputs.end());
  std::vector<RowMark> marks(c.marks.begin(), c.marks.end());
  for (size_t s = 0; s < steps->size(); ++s) {
    const FusedStep& step = (*steps)[s];
    std::vector<ValueInfo> in;
    std::vector<RowMark> in_marks;
    for (int operand : step.operands) {
      in.push_back(infos[operand]);
      in_marks.push_back(marks[operand]);
    }
    const RowContext context{step.node, in_marks, in, absl::MakeConstSpan(&(*types)[s], 1)};
    const bool time_major =
        std::find(in_marks.begin(), in_marks.end(), RowMark::kRowsDim1) != in_marks.end();
    RowMark mark = time_major ? RowMark::kMixed : RowsElementwise(context);
    if (mark == RowMark::kMixed) mark = ops::TimeMajorElementwise(context);
    marks.push_back(mark);
    infos.push_back({(*types)[s], {}, {}});
  }
  return marks.back();
}

double ChainFlops(const Node& node, absl::Span<const TensorType>, absl::Span<const TensorType> out,
                  int64_t rows) {
  if (!out[0].shape.known()) return 0;
  const auto* names = node.attrs.Find<std::vector<std::string>>("ops");
  return static_cast<double>(names == nullptr ? 0 : names->size()) *
         static_cast<double>(out[0].shape.At(rows).elements());
}

const OpRegistrar kFusedElementwise({.name = "FusedElementwise",
                                     .min_inputs = 1,
                                     .max_inputs = ops::kMaxFusedInputs,
                                     .infer = InferChain,
                                     .rows = ChainRows,
                                     .time_major = ChainRows,
                                     .in_place = (uint64_t{1} << ops::kMaxFusedInputs) - 1,
                                     .flops = ChainFlops,
                                     .tensorflow = {ops::kNotInFiles}});

}  // namespace
}  // namespace floe
