// Element-wise ops: single ones, and chains of them that passes made.
#include "kernels/cuda/emit/chain.h"
#include "kernels/cuda/emit/emit_util.h"
#include "model/ops/fused_elementwise.h"

namespace floe::cuda {
namespace {

std::vector<DType> TypesOfInputs(const KernelArgs& args) {
  std::vector<DType> types;
  for (const ValueInfo& input : args.inputs) types.push_back(input.type.dtype);
  return types;
}

absl::Status CheckChainRanks(const KernelArgs& args) {
  for (size_t i = 0; i < args.inputs.size(); ++i)
    FLOE_RETURN_IF_ERROR(CheckRank(args, static_cast<int>(i), kChainDims));
  return absl::OkStatus();
}

// `shift`: how many dims of size 1 follow those of input `shifted`, by the output's rank.
class ChainEmitter final : public DeviceKernel {
 public:
  ChainEmitter(ChainProgram program, int shifted, int first_axis)
      : program_(std::move(program)), shifted_(shifted), first_axis_(first_axis) {}

  bool ReadsSpacedLines(int i, absl::Span<const Shape> inputs,
                        absl::Span<const Shape> outputs) const override {
    const Shape& shape = inputs[static_cast<size_t>(i)];
    return shifted_ < 0 && shape.rank() > 0 && shape == outputs[0];
  }

  void Emit(const DeviceAddresses& at, std::vector<Launch>* launches) const override {
    if (shifted_ < 0) {
      program_.Emit(at.inputs, at.out(0), at.line_strides, launches);
      return;
    }
    std::vector<TensorView> inputs(at.inputs.begin(), at.inputs.end());
    Shape& shape = inputs[static_cast<size_t>(shifted_)].shape;
    const int rank = at.out(0).shape.rank();
    while (shape.rank() > 0 && shape.rank() + first_axis_ < rank) shape.push_back(1);
    program_.Emit(inputs, at.out(0), {}, launches);
  }

 private:
  const ChainProgram program_;
  const int shifted_;  // an input whose dims begin at `first_axis`; -1: all end at the last
  const int first_axis_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeChain(const KernelArgs& args, const OpOfChain& op,
                                                  int shifted = -1, int first_axis = 0) {
  FLOE_RETURN_IF_ERROR(CheckChainRanks(args));
  FLOE_ASSIGN_OR_RETURN(ChainProgram program, ChainProgram::Make(TypesOfInputs(args), {op}));
  return std::make_unique<ChainEmitter>(std::move(program), shifted, first_axis);
}

std::vector<int> AllOperands(const KernelArgs& args) {
  std::vector<int> operands;
  for (size_t i = 0; i < args.inputs.size(); ++i) operands.push_back(static_cast<int>(i));
  return operands;
}

template <bool kGivesBool>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSingle(const KernelArgs& args) {
  // Shapes that do not broadcast have an answer of their own.
  if (!args.node.attrs.Bool("incompatible_shape_error", true))
    return absl::UnimplementedError("incompatible_shape_error = false on a GPU");
  return MakeChain(args, {args.node.op->name, AllOperands(args),
                          kGivesBool ? DType::kBool : args.inputs[0].type.dtype,
                          args.node.attrs.Float("alpha", 0.2f)});
}

// The bounds have the shape of the input, or are scalars: others are refused by the run.
absl::StatusOr<std::unique_ptr<Kernel>> MakeClip(const KernelArgs& args) {
  for (size_t i = 1; i < 3; ++i) {
    const SymShape& bound = args.inputs[i].type.shape;
    if (!bound.rank_known() || bound.rank() != 0)
      return absl::UnimplementedError("ClipByValue on a GPU takes scalar bounds");
  }
  return MakeSingle<false>(args);
}

template <bool kAlongRows>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSelect(const KernelArgs& args) {
  return MakeChain(args, {"Select", {0, 1, 2}, args.inputs[1].type.dtype}, kAlongRows ? 0 : -1, 0);
}

// The bias runs along the last dim, or along dim 1 in NCHW.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBiasAdd(const KernelArgs& args) {
  const bool channels_first = args.node.attrs.String("data_format", "NHWC") == "NCHW";
  return MakeChain(args, {"Add", {0, 1}, args.inputs[0].type.dtype}, channels_first ? 1 : -1, 1);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(const KernelArgs& args) {
  return MakeChain(args, {"Cast", {0}, args.node.attrs.Type("DstT")});
}

// As many inputs at a time as a chain has; what follows is added onto the sum.
class AddNEmitter final : public DeviceKernel {
 public:
  explicit AddNEmitter(std::vector<ChainProgram> by_inputs) : by_inputs_(std::move(by_inputs)) {}

  void Emit(const DeviceAddresses& at, std::vector<Launch>* launches) const override {
    size_t next = std::min<size_t>(at.inputs.size(), kChainInputs);
    by_inputs_[next - 1].Emit(at.inputs.subspan(0, next), at.out(0), {}, launches);
    while (next < at.inputs.size()) {
      std::vector<TensorView> operands = {at.out(0)};
      while (operands.size() < kChainInputs && next < at.inputs.size())
        operands.push_back(at.inputs[next++]);
      by_inputs_[operands.size() - 1].Emit(operands, at.out(0), {}, launches);
    }
  }

 private:
  const std::vector<ChainProgram> by_inputs_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeAddN(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckChainRanks(args));
  const DType dtype = args.inputs[0].type.dtype;
  std::vector<ChainProgram> by_inputs;
  for (int count = 1; count <= kChainInputs; ++count) {
    std::vector<OpOfChain> sums;
    if (count == 1) sums.push_back({"Cast", {0}, dtype});
    for (int i = 1; i < count; ++i) sums.push_back({"Add", {i == 1 ? 0 : count + i - 2, i}, dtype});
    const std::vector<DType> inputs(static_cast<size_t>(count), dtype);
    FLOE_ASSIGN_OR_RETURN(ChainProgram program, ChainProgram::Make(inputs, sums));
    by_inputs.push_back(std::move(program));
  }
  return std::make_unique<AddNEmitter>(std::move(by_inputs));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFused(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckChainRanks(args));
  FLOE_ASSIGN_OR_RETURN(const std::vector<ops::FusedStep> steps,
                        ops::FusedStepsOf(args.node, static_cast<int>(args.inputs.size())));
  FLOE_ASSIGN_OR_RETURN(const Types types, ops::InferFusedSteps(steps, args.inputs));
  std::vector<OpOfChain> ops;
  for (size_t s = 0; s < steps.size(); ++s) {
    const Node& node = steps[s].node;
    ops.push_back(
        {node.op->name, steps[s].operands, types[s].dtype, node.attrs.Float("alpha", 0.2f)});
  }
  FLOE_ASSIGN_OR_RETURN(ChainProgram program, ChainProgram::Make(TypesOfInputs(args), ops));
  return std::make_unique<ChainEmitter>(std::move(program), -1, 0);
}

constexpr DType kChainTypes[] = {DType::kFloat32, DType::kBool,   DType::kInt8,
                                 DType::kInt16,   DType::kInt32,  DType::kInt64,
                                 DType::kUInt8,   DType::kUInt16, DType::kUInt32};

bool RegisterChains() {
  const std::vector<DType> all(std::begin(kChainTypes), std::end(kChainTypes));
  for (const DType dtype : kChainTypes) {
    for (const ChainOpName& op : ChainOpsOf(dtype)) {
      if (op.operands == 3) {
        RegisterEmitter<MakeClip>({op.name}, {dtype});
      } else if (op.gives_bool) {
        RegisterEmitter<MakeSingle<true>>({op.name}, {dtype});
      } else {
        RegisterEmitter<MakeSingle<false>>({op.name}, {dtype});
      }
    }
  }
  RegisterEmitter<MakeSelect<true>>({"Select"}, {DType::kBool});
  RegisterEmitter<MakeSelect<false>>({"SelectV2"}, {DType::kBool});
  std::vector<DType> numbers = all;
  std::erase(numbers, DType::kBool);
  RegisterEmitter<MakeBiasAdd>({"BiasAdd"}, numbers);
  RegisterEmitter<MakeAddN>({"AddN"}, numbers);
  RegisterEmitter<MakeCast>({"Cast"}, all);
  RegisterEmitter<MakeFused>({"FusedElementwise"}, all);
  return true;
}
const bool kChainsRegistered = RegisterChains();

}  // namespace
}  // namespace floe::cuda
