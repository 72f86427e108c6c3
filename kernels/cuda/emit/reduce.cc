// Reductions over any axes, ArgMax and ArgMin.
#include <limits>

#include "kernels/cuda/emit/chain.h"
#include "kernels/cuda/emit/copy.h"
#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/reduce_args.h"

namespace floe::cuda {
namespace {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Joins dims that run on.
void AddReduceDim(int64_t size, int64_t stride, int32_t* dims, Divider* dim, int64_t* strides) {
  if (size == 1) return;
  const int32_t last = *dims - 1;
  if (last >= 0 && strides[last] == stride * size) {
    const int64_t joined = static_cast<int64_t>(dim[last].divisor) * size;
    if (joined <= INT32_MAX) {
      dim[last] = DividerOf(joined);
      strides[last] = stride;
      return;
    }
  }
  dim[*dims] = DividerOf(size);
  strides[*dims] = stride;
  ++*dims;
}

struct ReduceSpec {
  Fold fold;
  uint64_t axes;  // bit i: axis i is reduced
  Element type;
};

// What a fold of nothing gives, as an element of the type.
void EmitEmptyFold(const ReduceSpec& spec, const TensorView& out, std::vector<Launch>* launches) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float real = 0;
  int64_t whole = spec.fold == Fold::kProduct || spec.fold == Fold::kAll ? 1 : 0;
  if (spec.fold == Fold::kProduct) real = 1;
  if (spec.fold == Fold::kMean) real = std::numeric_limits<float>::quiet_NaN();
  if (spec.fold == Fold::kMaximum || spec.fold == Fold::kMinimum) {
    const bool lowest = spec.fold == Fold::kMaximum;
    real = lowest ? -kInfinity : kInfinity;
    const bool wide = spec.type == Element::kInt64;
    whole = lowest ? (wide ? INT64_MIN : INT32_MIN) : (wide ? INT64_MAX : INT32_MAX);
  }
  EmitFillOf(spec.type == Element::kFloat ? static_cast<const void*>(&real) : &whole,
             static_cast<int64_t>(DTypeSize(out.dtype)), out.data, out.elements(), launches);
}

// Whether the last axis is kept, so that neighbouring outputs lie side by side. It must not follow
// from the size of axis 0 or 1, which may be the number of rows.
bool KeepsLastAxis(const Shape& in, uint64_t axes) {
  int axis = in.rank() - 1;
  while (axis > 1 && in.dim(axis) == 1) --axis;
  return axis >= 0 && ((axes >> axis) & 1) == 0;
}

void EmitReduce(const ReduceSpec& spec, const DeviceAddresses& at, std::vector<Launch>* launches) {
  const TensorView &in = at.in(0), &out = at.out(0);
  const Shape& shape = in.shape;
  if (out.elements() == 0) return;
  if (in.elements() == 0) {
    EmitEmptyFold(spec, out, launches);
    return;
  }
  ReduceArgs args{};
  args.in = in.data;
  args.out = out.data;
  args.outputs = out.elements();
  args.folded = in.elements() / out.elements();
  args.fold = spec.fold;
  args.type = spec.type;
  const IntList strides = kernels::DenseStrides(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    if (((spec.axes >> i) & 1) != 0) {
      AddReduceDim(shape.dim(i), stride, &args.reduced_dims, args.reduced, args.reduced_stride);
    } else {
      AddReduceDim(shape.dim(i), stride, &args.kept_dims, args.kept, args.kept_stride);
    }
  }
  constexpr int64_t kWarps = kReduceThreads / 32;
  if (spec.type != Element::kFloat) {
    launches->push_back(
        Launch::Of(KernelId::reduce_integers, {Blocks(args.outputs, kReduceThreads)}, args));
  } else if (KeepsLastAxis(shape, spec.axes)) {
    launches->push_back(
        Launch::Of(KernelId::reduce_lines, {Blocks(args.outputs, kReduceThreads)}, args));
  } else if (args.folded <= kWarpRow) {
    launches->push_back(Launch::Of(KernelId::reduce_warp, {Blocks(args.outputs, kWarps)}, args));
  } else {
    launches->push_back(Launch::Of(KernelId::reduce_block, {Blocks(args.outputs, 1)}, args));
  }
}

template <Fold kFold>
KernelOr MakeReduce(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, 2 * kReduceDims));
  FLOE_ASSIGN_OR_RETURN(const IntList axes, KnownInts(args, 1));
  ReduceSpec spec{kFold, 0, *ElementOfDType(args.inputs[0].type.dtype)};
  for (const int64_t axis : axes) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, args.inputs[0].type.shape.rank()));
    if (((spec.axes >> a) & 1) != 0)
      return absl::InvalidArgumentError(absl::StrCat("axis ", a, " is named twice"));
    spec.axes |= uint64_t{1} << a;
  }
  return MakeEmitKernel([spec](const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitReduce(spec, at, launches);
  });
}

template <bool kSmallest>
KernelOr MakeArgMax(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, 64));
  FLOE_ASSIGN_OR_RETURN(const int64_t given, KnownInt(args, 1));
  const SymShape& shape = args.inputs[0].type.shape;
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(given, shape.rank()));
  if (!shape.dim(axis).concrete() || shape.dim(axis).size() == 0)
    return absl::UnimplementedError(absl::StrCat(args.node.op->name, " on a GPU along dimension ",
                                                 axis, " of ", shape.ToString()));
  return MakeEmitKernel([axis](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const Shape& in = at.in(0).shape;
    if (at.out(0).elements() == 0) return;
    int64_t inner = 1;
    for (int i = axis + 1; i < in.rank(); ++i) inner *= in.dim(i);
    ArgMaxArgs arg{};
    arg.in = at.in(0).data;
    arg.out = at.out(0).data;
    arg.outputs = at.out(0).elements();
    arg.along = in.dim(axis);
    arg.inner = DividerOf(inner);
    arg.type = *ElementOfDType(at.in(0).dtype);
    arg.out_type = *ElementOfDType(at.out(0).dtype);
    arg.smallest = kSmallest ? 1 : 0;
    const bool rows = inner == 1 && arg.type == Element::kFloat;
    launches->push_back(
        Launch::Of(rows ? KernelId::argmax_warp : KernelId::argmax_lines,
                   {Blocks(arg.outputs, rows ? kReduceThreads / 32 : kReduceThreads)}, arg));
  });
}

bool RegisterReductions() {
  const std::vector<DType> reals = {DType::kFloat32, DType::kInt32, DType::kInt64};
  RegisterEmitter<MakeReduce<Fold::kSum>>({"Sum"}, reals);
  RegisterEmitter<MakeReduce<Fold::kMean>>({"Mean"}, reals);
  RegisterEmitter<MakeReduce<Fold::kProduct>>({"Prod"}, reals);
  RegisterEmitter<MakeReduce<Fold::kMaximum>>({"Max"}, reals);
  RegisterEmitter<MakeReduce<Fold::kMinimum>>({"Min"}, reals);
  RegisterEmitter<MakeReduce<Fold::kNorm>>({"EuclideanNorm"}, {DType::kFloat32});
  RegisterEmitter<MakeReduce<Fold::kAll>>({"All"}, {DType::kBool});
  RegisterEmitter<MakeReduce<Fold::kAny>>({"Any"}, {DType::kBool});
  const std::vector<DType> ordered = {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUInt8,
                                      DType::kBool};
  RegisterEmitter<MakeArgMax<false>>({"ArgMax"}, ordered);
  RegisterEmitter<MakeArgMax<true>>({"ArgMin"}, ordered);
  return true;
}
const bool kReductionsRegistered = RegisterReductions();

}  // namespace
}  // namespace floe::cuda
