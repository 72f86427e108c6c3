#include "kernels/cuda/emit/chain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace floe::cuda {
namespace {

constexpr ChainOp kNone = static_cast<ChainOp>(255);

// What an op is in each kernel: of float32, of integers (chain_any), of bools in `chain` and in
// chain_any.
struct ChainRow {
  ChainOpName name;
  ChainOp of_float, of_integer = kNone, of_bool = kNone, of_bool_word = kNone;
};

constexpr ChainRow kChainRows[] = {
    {{"Add", 2, false}, ChainOp::kAdd, ChainOp::kIntAdd},
    {{"Sub", 2, false}, ChainOp::kSub, ChainOp::kIntSub},
    {{"Mul", 2, false}, ChainOp::kMul, ChainOp::kIntMul},
    {{"RealDiv", 2, false}, ChainOp::kDiv},
    {{"Maximum", 2, false}, ChainOp::kMaximum, ChainOp::kIntMaximum},
    {{"Minimum", 2, false}, ChainOp::kMinimum, ChainOp::kIntMinimum},
    {{"SquaredDifference", 2, false}, ChainOp::kSquaredDifference, ChainOp::kIntSquaredDifference},
    {{"DivNoNan", 2, false}, ChainOp::kDivNoNan},
    {{"MulNoNan", 2, false}, ChainOp::kMulNoNan},
    {{"Xdivy", 2, false}, ChainOp::kXdivy},
    {{"FloorDiv", 2, false}, ChainOp::kFloorDiv},
    {{"Pow", 2, false}, ChainOp::kPow},
    {{"Equal", 2, true}, ChainOp::kEqual, ChainOp::kIntEqual, ChainOp::kEqual, ChainOp::kIntEqual},
    {{"NotEqual", 2, true},
     ChainOp::kNotEqual,
     ChainOp::kIntNotEqual,
     ChainOp::kNotEqual,
     ChainOp::kIntNotEqual},
    {{"Less", 2, true}, ChainOp::kLess, ChainOp::kIntLess},
    {{"LessEqual", 2, true}, ChainOp::kLessEqual, ChainOp::kIntLessEqual},
    {{"Greater", 2, true}, ChainOp::kGreater, ChainOp::kIntGreater},
    {{"GreaterEqual", 2, true}, ChainOp::kGreaterEqual, ChainOp::kIntGreaterEqual},
    {{"LogicalAnd", 2, true}, kNone, kNone, ChainOp::kAnd, ChainOp::kIntAnd},
    {{"LogicalOr", 2, true}, kNone, kNone, ChainOp::kOr, ChainOp::kIntOr},
    {{"LogicalNot", 1, true}, kNone, kNone, ChainOp::kNot, ChainOp::kIntNot},
    {{"BitwiseAnd", 2, false}, kNone, ChainOp::kIntAnd},
    {{"BitwiseOr", 2, false}, kNone, ChainOp::kIntOr},
    {{"BitwiseXor", 2, false}, kNone, ChainOp::kIntXor},
    {{"Invert", 1, false}, kNone, ChainOp::kIntInvert},
    {{"ClipByValue", 3, false}, ChainOp::kClip, ChainOp::kIntClip},
    {{"Relu", 1, false}, ChainOp::kRelu, ChainOp::kIntRelu},
    {{"Relu6", 1, false}, ChainOp::kRelu6, ChainOp::kIntRelu6},
    {{"Elu", 1, false}, ChainOp::kElu},
    {{"Selu", 1, false}, ChainOp::kSelu},
    {{"LeakyRelu", 1, false}, ChainOp::kLeakyRelu},
    {{"Sigmoid", 1, false}, ChainOp::kSigmoid},
    {{"Tanh", 1, false}, ChainOp::kTanh},
    {{"Exp", 1, false}, ChainOp::kExp},
    {{"Expm1", 1, false}, ChainOp::kExpm1},
    {{"Log", 1, false}, ChainOp::kLog},
    {{"Log1p", 1, false}, ChainOp::kLog1p},
    {{"Sqrt", 1, false}, ChainOp::kSqrt},
    {{"Rsqrt", 1, false}, ChainOp::kRsqrt},
    {{"Square", 1, false}, ChainOp::kSquare, ChainOp::kIntSquare},
    {{"Neg", 1, false}, ChainOp::kNeg, ChainOp::kIntNeg},
    {{"Abs", 1, false}, ChainOp::kAbs, ChainOp::kIntAbs},
    {{"Sign", 1, false}, ChainOp::kSign, ChainOp::kIntSign},
    {{"Softplus", 1, false}, ChainOp::kSoftplus},
    {{"Softsign", 1, false}, ChainOp::kSoftsign},
    {{"Erf", 1, false}, ChainOp::kErf},
    {{"Erfc", 1, false}, ChainOp::kErfc},
    {{"Gelu", 1, false}, ChainOp::kGelu},
    {{"GeluTanh", 1, false}, ChainOp::kGeluTanh},
    {{"Mish", 1, false}, ChainOp::kMish},
    {{"Floor", 1, false}, ChainOp::kFloor},
    {{"Ceil", 1, false}, ChainOp::kCeil},
    {{"Round", 1, false}, ChainOp::kRound, ChainOp::kIntCopy},
    {{"Rint", 1, false}, ChainOp::kRound},
    {{"Reciprocal", 1, false}, ChainOp::kReciprocal},
    {{"IsNan", 1, true}, ChainOp::kIsNan},
    {{"IsInf", 1, true}, ChainOp::kIsInf},
    {{"IsFinite", 1, true}, ChainOp::kIsFinite},
};

// `any`: for chain_any.
ChainOp CastOf(DType from, DType to, bool any) {
  const bool float_in = from == DType::kFloat32, float_out = to == DType::kFloat32;
  if (from == to) return any ? ChainOp::kIntCopy : ChainOp::kCopy;
  if (!any) return float_out ? ChainOp::kCopy : ChainOp::kOr;  // or with itself: 0 or 1
  if (float_in) return to == DType::kBool ? ChainOp::kToBool : ChainOp::kToInt;
  if (float_out) return ChainOp::kToFloat;
  return to == DType::kBool ? ChainOp::kIntToBool : ChainOp::kIntCopy;
}

ChainOp ChainOpOf(const OpOfChain& op, DType dtype, bool any) {
  if (op.op == "Cast") return CastOf(dtype, op.result, any);
  if (op.op == "Select" || op.op == "SelectV2") return any ? ChainOp::kIntSelect : ChainOp::kSelect;
  for (const ChainRow& row : kChainRows) {
    if (op.op != row.name.name) continue;
    if (dtype == DType::kFloat32) return row.of_float;
    if (dtype == DType::kBool) return any ? row.of_bool_word : row.of_bool;
    return row.of_integer;
  }
  return kNone;
}

// Which results wait for a later step than the next one, and in which slots.
class SlotsOfChain {
 public:
  SlotsOfChain(absl::Span<const OpOfChain> ops, int inputs) : last_(ops.size(), -1) {
    for (size_t s = 0; s < ops.size(); ++s) {
      for (int operand : ops[s].operands) {
        if (operand >= inputs) last_[static_cast<size_t>(operand - inputs)] = static_cast<int>(s);
      }
    }
    slot_.assign(ops.size(), -1);
    for (size_t s = 0; s < ops.size(); ++s) {
      // The operands have been read when the result is kept.
      for (size_t r = 0; r < s; ++r) {
        if (slot_[r] >= 0 && last_[r] == static_cast<int>(s))
          taken_[static_cast<size_t>(slot_[r])] = false;
      }
      if (last_[s] > static_cast<int>(s) + 1) slot_[s] = Take();
    }
  }
  int of(size_t step) const { return slot_[step]; }
  int count() const { return static_cast<int>(taken_.size()); }

 private:
  int Take() {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    const auto slot = static_cast<int>(free - taken_.begin());
    if (free == taken_.end()) taken_.push_back(false);
    taken_[static_cast<size_t>(slot)] = true;
    return slot;
  }

  std::vector<int> last_, slot_;
  std::vector<bool> taken_;
};

bool IsFloatOrBool(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kBool; }

}  // namespace

std::optional<Element> ElementOfDType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Element::kFloat;
    case DType::kBool:
      return Element::kBool;
    case DType::kInt8:
      return Element::kInt8;
    case DType::kInt16:
      return Element::kInt16;
    case DType::kInt32:
      return Element::kInt32;
    case DType::kInt64:
      return Element::kInt64;
    case DType::kUInt8:
      return Element::kUInt8;
    case DType::kUInt16:
      return Element::kUInt16;
    case DType::kUInt32:
      return Element::kUInt32;
    default:
      return std::nullopt;
  }
}

std::vector<ChainOpName> ChainOpsOf(DType dtype) {
  std::vector<ChainOpName> names;
  for (const ChainRow& row : kChainRows) {
    if (ChainOpOf({row.name.name, {}, dtype}, dtype, true) != kNone) names.push_back(row.name);
  }
  return names;
}

absl::StatusOr<ChainProgram> ChainProgram::Make(absl::Span<const DType> inputs,
                                                absl::Span<const OpOfChain> ops) {
  if (inputs.empty() || inputs.size() > kChainInputs || ops.empty() || ops.size() > kChainSteps)
    return absl::UnimplementedError(
        absl::StrCat("a chain of ", ops.size(), " steps and ", inputs.size(), " inputs on a GPU"));
  ChainProgram program;
  bool any = false;
  for (size_t i = 0; i < inputs.size() + ops.size(); ++i) {
    const DType dtype = i < inputs.size() ? inputs[i] : ops[i - inputs.size()].result;
    const std::optional<Element> element = ElementOfDType(dtype);
    if (!element.has_value())
      return absl::UnimplementedError(
          absl::StrCat(ops[0].op, " has no kernel on a GPU for ", DTypeName(dtype)));
    if (i < inputs.size()) program.args_.input[i].type = *element;
    any = any || !IsFloatOrBool(dtype);
  }
  any = any || SlotsOfChain(ops, static_cast<int>(inputs.size())).count() > kChainSlots;
  program.args_.out_type = *ElementOfDType(ops.back().result);
  program.kernel_ = any ? KernelId::chain_any : KernelId::chain;
  FLOE_RETURN_IF_ERROR(program.AddSteps(inputs, ops, any));
  return program;
}

absl::Status ChainProgram::AddSteps(absl::Span<const DType> inputs, absl::Span<const OpOfChain> ops,
                                    bool any) {
  const int count = static_cast<int>(inputs.size());
  const SlotsOfChain slots(ops, count);
  if (slots.count() > kChainAnySlots)
    return absl::UnimplementedError(absl::StrCat("a chain that keeps ", slots.count(), " results"));
  for (size_t s = 0; s < ops.size(); ++s) {
    const OpOfChain& op = ops[s];
    const auto operand_type = [&](size_t k) {
      const int at = op.operands[k];
      return at < count ? inputs[static_cast<size_t>(at)]
                        : ops[static_cast<size_t>(at - count)].result;
    };
    ChainStep& step = args_.step[args_.steps++];
    step.op = ChainOpOf(op, operand_type(0), any);
    if (step.op == kNone)
      return absl::UnimplementedError(
          absl::StrCat(op.op, " has no kernel on a GPU for ", DTypeName(operand_type(0))));
    const bool twice = step.op == ChainOp::kOr && op.operands.size() == 1;
    step.operands = static_cast<uint8_t>(twice ? 2 : op.operands.size());
    for (size_t k = 0; k < step.operands; ++k) {
      const int at = op.operands[twice ? 0 : k], result = at - count;
      step.operand[k] = static_cast<uint8_t>(
          at < count                          ? kFirstInput + at
          : result + 1 == static_cast<int>(s) ? kLastResult
                                              : kFirstSlot + slots.of(static_cast<size_t>(result)));
    }
    const int slot = slots.of(s);
    step.keep_in = slot < 0 ? kNoSlot : static_cast<uint8_t>(slot);
    step.type = *ElementOfDType(op.result);
    step.alpha = op.alpha;
  }
  return absl::OkStatus();
}

namespace {

// The place of each dim of an input with the output's shape, whose lines lie apart.
void SpaceInput(const Shape& shape, int64_t line_stride, ChainInput* input, int64_t* stride) {
  input->spread = Spread::kStrided;
  stride[shape.rank() - 1] = 1;
  for (int d = shape.rank() - 2; d >= 0; --d) {
    stride[d] = line_stride;
    line_stride *= shape.dim(d);
  }
}

// Dim `axis` of `in` where it broadcasts to `rank` dims.
int64_t SpreadDim(const Shape& in, int rank, int axis) {
  const int own = axis - (rank - in.rank());
  return own < 0 ? 1 : in.dim(own);
}

void SpreadInput(const Shape& in, const Shape& out, ChainInput* input, int64_t* stride) {
  const int rank = out.rank();
  const int64_t elements = in.elements(), all = out.elements();
  input->period = DividerOf(1);
  if (elements == 1 || elements == all) {
    input->spread = elements == all ? Spread::kWhole : Spread::kOne;
    return;
  }
  int first = 0, last = rank - 1;  // of the dims that are not 1
  while (SpreadDim(in, rank, first) == 1) ++first;
  while (SpreadDim(in, rank, last) == 1) --last;
  int64_t inner = 1, spanned = 1;
  for (int d = last + 1; d < rank; ++d) inner *= out.dim(d);
  for (int d = first; d <= last; ++d) spanned *= out.dim(d);
  if (spanned == elements && inner == 1) {
    input->spread = Spread::kRepeated;
    input->period = DividerOf(elements);
  } else if (elements * inner == all) {
    input->spread = Spread::kHeld;
    input->period = DividerOf(inner);
  } else {
    input->spread = Spread::kStrided;
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t size = SpreadDim(in, rank, d);
      stride[d] = size == 1 ? 0 : step;
      step *= size;
    }
  }
}

}  // namespace

void ChainProgram::Emit(absl::Span<const TensorView> inputs, const TensorView& out,
                        absl::Span<const int64_t> line_strides,
                        std::vector<Launch>* launches) const {
  if (out.elements() == 0) return;
  ChainArgs args = args_;
  args.out = out.data;
  args.elements = out.elements();
  args.dims = static_cast<uint8_t>(out.shape.rank());
  for (int d = 0; d < out.shape.rank(); ++d) args.dim[d] = DividerOf(out.shape.dim(d));
  for (size_t k = 0; k < inputs.size(); ++k) {
    args.input[k].data = inputs[k].data;
    SpreadInput(inputs[k].shape, out.shape, &args.input[k], args.stride[k]);
    if (!line_strides.empty() && line_strides[k] != 0)
      SpaceInput(out.shape, line_strides[k], &args.input[k], args.stride[k]);
  }
  const int each = kernel_ == KernelId::chain ? kChainEach : 1;
  launches->push_back(
      Launch::Of(kernel_, {Blocks(args.elements, int64_t{kChainThreads} * each)}, args));
}

}  // namespace floe::cuda
