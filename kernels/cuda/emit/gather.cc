// Gathers by indices that are known at load: those of requests may lie outside, which a launch
// cannot report.
#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/move_args.h"

namespace floe::cuda {
namespace {

// The params as [batch, outer, along, inner], the indices as [batch, count].
void EmitGather(int64_t batch_dims, int axis, const DeviceAddresses& at,
                std::vector<Launch>* launches) {
  const Shape &params = at.in(0).shape, &indices = at.in(1).shape;
  if (at.out(0).elements() == 0) return;
  int64_t outer = 1, inner = 1, count = 1;
  for (int i = 0; i < params.rank(); ++i) {
    if (i >= batch_dims && i < axis) outer *= params.dim(i);
    if (i > axis) inner *= params.dim(i);
  }
  for (int i = static_cast<int>(batch_dims); i < indices.rank(); ++i) count *= indices.dim(i);
  GatherArgs args{};
  args.in = at.in(0).data;
  args.indices = at.in(1).data;
  args.out = at.out(0).data;
  args.units = at.out(0).elements();
  args.along = params.dim(axis);
  args.unit_bytes = static_cast<int32_t>(DTypeSize(at.in(0).dtype));
  args.index_bytes = static_cast<int32_t>(DTypeSize(at.in(1).dtype));
  args.inner = DividerOf(inner);
  args.count = DividerOf(count);
  args.outer = DividerOf(outer);
  launches->push_back(
      Launch::Of(KernelId::gather, {Blocks(args.units, kMoveThreads * kMoveEach)}, args));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGather(const KernelArgs& args) {
  FLOE_RETURN_IF_ERROR(CheckMovable(args, 0));
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, 64));
  FLOE_ASSIGN_OR_RETURN(const IntList indices, KnownInts(args, 1));
  const DType index_type = args.inputs[1].type.dtype;
  if (DTypeSize(index_type) < 2)
    return absl::UnimplementedError(absl::StrCat("indices of ", DTypeName(index_type)));
  int64_t given = 0;
  if (args.inputs.size() > 2) {
    FLOE_ASSIGN_OR_RETURN(given, KnownInt(args, 2));
  }
  const SymShape& params = args.inputs[0].type.shape;
  FLOE_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(given, params.rank()));
  int64_t batch_dims = args.node.attrs.Int("batch_dims");
  if (batch_dims < 0) batch_dims += args.inputs[1].type.shape.rank();
  const Dim& along = params.dim(axis);
  for (const int64_t index : indices) {
    if (index < 0 || !along.concrete() || index >= along.size())
      return absl::UnimplementedError(absl::StrCat(args.node.op->name, " on a GPU: index ", index,
                                                   " of dimension ", axis, " of ",
                                                   params.ToString()));
  }
  return MakeEmitKernel(
      [batch_dims, axis](const DeviceAddresses& at, std::vector<Launch>* launches) {
        EmitGather(batch_dims, axis, at, launches);
      });
}

bool RegisterGathers() {
  RegisterEmitter<MakeGather>({"GatherV2", "Gather"}, {});
  return true;
}
const bool kGathersRegistered = RegisterGathers();

}  // namespace
}  // namespace floe::cuda
