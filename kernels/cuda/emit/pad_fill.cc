// Pad, PadV2, MirrorPad, Fill, ZerosLike and OnesLike.
#include "kernels/cuda/emit/chain.h"
#include "kernels/cuda/emit/copy.h"
#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/move_args.h"

namespace floe::cuda {
namespace {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Dims that are not padded join the one before them.
void AddPadDim(int64_t out, int64_t low, int64_t size, PadArgs* args) {
  const int last = args->dims - 1;
  if (last >= 0 && low == 0 && out == size &&
      (args->mode == PadMode::kConstant ||
       (args->low[last] == 0 && args->dim[last].divisor == args->size[last]))) {
    const int64_t joined = static_cast<int64_t>(args->dim[last].divisor) * out;
    if (joined <= INT32_MAX) {
      args->dim[last] = DividerOf(joined);
      args->low[last] *= size;
      args->size[last] *= size;
      return;
    }
  }
  args->dim[args->dims] = DividerOf(out);
  args->low[args->dims] = low;
  args->size[args->dims] = size;
  ++args->dims;
}

void EmitPad(const IntList& pads, PadMode mode, const DeviceAddresses& at,
             std::vector<Launch>* launches) {
  const TensorView &in = at.in(0), &out = at.out(0);
  if (out.elements() == 0) return;
  PadArgs args{};
  args.in = in.data;
  args.out = out.data;
  args.value = mode == PadMode::kConstant && at.inputs.size() > 2 ? at.in(2).data : nullptr;
  args.units = out.elements();
  args.unit_bytes = static_cast<int32_t>(DTypeSize(in.dtype));
  args.mode = mode;
  for (int i = 0; i < in.shape.rank(); ++i)
    AddPadDim(out.shape.dim(i), pads[2 * static_cast<size_t>(i)], in.shape.dim(i), &args);
  if (args.dims == 0) AddPadDim(1, 0, 1, &args);
  int64_t stride = 1;
  for (int d = args.dims - 1; d >= 0; --d) {
    args.in_stride[d] = stride;
    stride *= args.size[d];
  }
  launches->push_back(
      Launch::Of(KernelId::pad, {Blocks(args.units, kMoveThreads * kMoveEach)}, args));
}

absl::StatusOr<IntList> PadsOf(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, kMoveDims));
  FLOE_ASSIGN_OR_RETURN(IntList pads, KnownInts(args, 1));
  const int rank = args.inputs[0].type.shape.rank();
  if (static_cast<int>(pads.size()) != 2 * rank)
    return absl::InvalidArgumentError(
        absl::StrCat("paddings has ", pads.size() / 2, " pairs, input has rank ", rank));
  return pads;
}

KernelOr MakePad(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(IntList pads, PadsOf(args));
  return MakeEmitKernel([pads](const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitPad(pads, PadMode::kConstant, at, launches);
  });
}

KernelOr MakeMirrorPad(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(IntList pads, PadsOf(args));
  const bool reflect = args.node.attrs.String("mode", "REFLECT") == "REFLECT";
  const SymShape& shape = args.inputs[0].type.shape;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t most = std::max(pads[2 * d], pads[2 * d + 1]);
    if (most == 0) continue;
    // Too few elements to mirror fail the run, which a launch cannot.
    if (!shape.dim(i).concrete() || most > shape.dim(i).size() - (reflect ? 1 : 0))
      return absl::UnimplementedError(absl::StrCat(
          "MirrorPad on a GPU of ", most, " elements of dimension ", i, " of ", shape.ToString()));
  }
  const PadMode mode = reflect ? PadMode::kReflect : PadMode::kSymmetric;
  return MakeEmitKernel([pads, mode](const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitPad(pads, mode, at, launches);
  });
}

KernelOr MakeFill(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 1));
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitFill(at.in(1).data, static_cast<int64_t>(DTypeSize(at.out(0).dtype)), at.out(0).data,
             at.out(0).elements(), launches);
  });
}

KernelOr MakeZerosLike(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const uint8_t zero[16] = {};
    EmitFillOf(zero, static_cast<int64_t>(DTypeSize(at.out(0).dtype)), at.out(0).data,
               at.out(0).elements(), launches);
  });
}

// Little-endian, as the device is.
KernelOr MakeOnesLike(const KernelArgs& args) {
  if (!ElementOfDType(args.inputs[0].type.dtype).has_value())
    return absl::UnimplementedError(
        absl::StrCat("OnesLike of ", DTypeName(args.inputs[0].type.dtype), " on a GPU"));
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const int64_t whole = 1;
    const float real = 1.0f;
    const bool is_float = at.out(0).dtype == DType::kFloat32;
    EmitFillOf(is_float ? static_cast<const void*>(&real) : &whole,
               static_cast<int64_t>(DTypeSize(at.out(0).dtype)), at.out(0).data,
               at.out(0).elements(), launches);
  });
}

bool RegisterPads() {
  RegisterEmitter<MakePad>({"Pad", "PadV2"}, {});
  RegisterEmitter<MakeMirrorPad>({"MirrorPad"}, {});
  RegisterEmitter<MakeFill>({"Fill"}, {});
  RegisterEmitter<MakeZerosLike>({"ZerosLike"}, {});
  RegisterEmitter<MakeOnesLike>({"OnesLike"}, {});
  return true;
}
const bool kPadsRegistered = RegisterPads();

}  // namespace
}  // namespace floe::cuda
