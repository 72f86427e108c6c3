// Softmax, LogSoftmax, LayerNorm and batch norms with given statistics.
#include "kernels/cuda/emit/copy.h"
#include "kernels/cuda/emit/emit_util.h"
#include "kernels/cuda/reduce_args.h"

namespace floe::cuda {
namespace {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// A warp for a short row, a block for a long one.
template <class Args>
void EmitRows(KernelId by_warp, KernelId by_block, const Args& args,
              std::vector<Launch>* launches) {
  if (args.rows == 0 || args.columns == 0) return;
  const bool warp = args.columns <= kWarpRow;
  launches->push_back(Launch::Of(warp ? by_warp : by_block,
                                 {Blocks(args.rows, warp ? kReduceThreads / 32 : 1)}, args));
}

template <bool kLog>
KernelOr MakeSoftmax(const KernelArgs&) {
  return MakeEmitKernel([](const DeviceAddresses& at, std::vector<Launch>* launches) {
    const Shape& shape = at.in(0).shape;
    const int64_t columns = shape.rank() == 0 ? 1 : shape.dim(shape.rank() - 1);
    if (shape.elements() == 0) return;
    EmitRows(KernelId::softmax_warp, KernelId::softmax_block,
             SoftmaxArgs{at.in(0).as<float>(), at.out(0).as<float>(), shape.elements() / columns,
                         static_cast<int32_t>(columns), kLog ? 1 : 0},
             launches);
  });
}

KernelOr MakeLayerNorm(const KernelArgs& args) {
  return MakeEmitKernel([epsilon = args.node.attrs.Float("epsilon")](
                            const DeviceAddresses& at, std::vector<Launch>* launches) {
    const int64_t columns = at.in(1).elements();
    if (at.out(0).elements() == 0) return;
    EmitRows(KernelId::layer_norm_warp, KernelId::layer_norm_block,
             LayerNormArgs{at.in(0).as<float>(), at.in(1).as<float>(), at.in(2).as<float>(),
                           at.out(0).as<float>(), at.out(0).elements() / columns,
                           static_cast<int32_t>(columns), epsilon},
             launches);
  });
}

// Outputs behind the first are the statistics, where anything reads them.
void EmitBatchNorm(bool channels_first, float epsilon, const DeviceAddresses& at,
                   std::vector<Launch>* launches) {
  for (size_t i = 1; i < at.outputs.size(); ++i) {
    const TensorView &out = at.outputs[i], &from = at.inputs[i == 2 || i == 4 ? 4 : 3];
    if (i < 5 && out.data != nullptr && out.elements() == from.elements())
      EmitBytes(from.data, out.data, static_cast<int64_t>(out.bytes()), launches);
  }
  const Shape& x = at.in(0).shape;
  if (x.elements() == 0 || at.out(0).data == nullptr) return;
  int64_t inner = 1;
  for (int i = 2; channels_first && i < x.rank(); ++i) inner *= x.dim(i);
  BatchNormArgs args{};
  args.x = at.in(0).as<float>();
  args.scale = at.in(1).as<float>();
  args.offset = at.in(2).as<float>();
  args.mean = at.in(3).as<float>();
  args.variance = at.in(4).as<float>();
  args.y = at.out(0).as<float>();
  args.elements = x.elements();
  args.inner = DividerOf(inner);
  args.channels = DividerOf(x.dim(channels_first ? 1 : x.rank() - 1));
  args.epsilon = epsilon;
  launches->push_back(
      Launch::Of(KernelId::batch_norm, {Blocks(args.elements, kReduceThreads)}, args));
}

KernelOr MakeBatchNorm(const KernelArgs& args) {
  if (args.node.attrs.Bool("is_training", true))
    return absl::UnimplementedError("batch norm by the batch's own statistics on a GPU");
  const bool channels_first = args.node.attrs.String("data_format", "NHWC").substr(0, 2) == "NC";
  const SymShape& x = args.inputs[0].type.shape;
  FLOE_RETURN_IF_ERROR(CheckRank(args, 0, 64));
  const Dim channels = x.rank() < 2 ? Dim::Unknown() : x.dim(channels_first ? 1 : x.rank() - 1);
  for (size_t i = 1; i < 5; ++i) {
    const SymShape& shape = args.inputs[i].type.shape;
    if (!channels.concrete() || !shape.rank_known() || shape.rank() != 1 ||
        shape.dim(0) != channels)
      return absl::UnimplementedError(absl::StrCat("batch norm on a GPU of ", x.ToString(),
                                                   " with input ", i, " of ", shape.ToString()));
  }
  return MakeEmitKernel([channels_first, epsilon = args.node.attrs.Float("epsilon", 1e-4f)](
                            const DeviceAddresses& at, std::vector<Launch>* launches) {
    EmitBatchNorm(channels_first, epsilon, at, launches);
  });
}

bool RegisterNormalizations() {
  RegisterEmitter<MakeSoftmax<false>>({"Softmax"}, {DType::kFloat32});
  RegisterEmitter<MakeSoftmax<true>>({"LogSoftmax"}, {DType::kFloat32});
  RegisterEmitter<MakeLayerNorm>({"LayerNorm"}, {DType::kFloat32});
  RegisterEmitter<MakeBatchNorm>({"FusedBatchNorm"}, {DType::kFloat32});
  return true;
}
const bool kNormalizationsRegistered = RegisterNormalizations();

}  // namespace
}  // namespace floe::cuda
