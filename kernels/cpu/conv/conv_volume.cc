// Conv3D as the packed multiplication over rows of voxels read in place: each output voxel is a row
// of A whose K elements are the contiguous pieces of the volume under the filter.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/conv/conv_nd.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

// A volume with the zeros that some tap reads, by dim.
struct PaddedVolume {
  int64_t size[3], before[3];
  int64_t first[3];  // the first output's first tap; beyond 0 where the stride leaves voxels out
  int64_t stride[3], dilation[3];
  int64_t channels;
  bool as_it_is = true;  // without any zeros

  explicit PaddedVolume(const ConvNdSizes& s) : channels(s.channels) {
    for (int k = 0; k < 3; ++k) {
      // Steps that nothing makes may be of any size; times a row of floats they would not fit.
      stride[k] = s.result[k] > 1 ? s.stride[k] : 1;
      dilation[k] = s.taps[k] > 1 ? s.dilation[k] : 1;
      before[k] = std::max<int64_t>(s.low[k], 0);
      first[k] = std::max<int64_t>(-s.low[k], 0);
      size[k] = std::max(before[k] + s.image[k], first[k] + (s.result[k] - 1) * stride[k] +
                                                     (s.taps[k] - 1) * dilation[k] + 1);
      as_it_is = as_it_is && size[k] == s.image[k];
    }
  }
  // In floats. A plane may be too large for the type until Floats() has been allocated.
  int64_t row() const { return size[2] * channels; }
  int64_t plane() const { return size[1] * row(); }
  int64_t Floats() const {
    return as_it_is ? 0 : ScratchFloats({size[0], size[1], size[2], channels});
  }
};

class VolumeConv final : public Kernel {
 public:
  VolumeConv(const KernelArgs& args, const ops::ConvNd& conv, const Epilogue& epilogue)
      : conv_(conv), epilogue_(epilogue), gemm_(PickGemm()), bias_(args, epilogue, gemm_) {
    const SymShape& image = args.inputs[0].type.shape;
    if (!args.inputs[1].has_constant() || !image.rank_known() || !image.dim(4).concrete()) return;
    const Tensor& filter = args.inputs[1].constant;
    const int64_t filter_in = filter.shape().dim(3), filter_out = filter.shape().dim(4);
    if (filter.elements() == 0 || image.dim(4).size() % filter_in != 0) return;
    const int64_t groups = image.dim(4).size() / filter_in;
    if (groups == 0 || filter_out % groups != 0) return;
    packed_groups_ = groups;
    const int64_t k = filter.elements() / filter_out;
    packed_ = PackedMemory(PackedFloats(k, filter_out, groups) * sizeof(float));
    PackGroups(gemm_, filter.as<float>(), groups, k, filter_out / groups,
               reinterpret_cast<float*>(packed_.data()));
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvNdSizes s(conv_, inputs[0], inputs[1], outputs[0], true);
    if (s.groups() == 0) return 0;
    return ScratchPieces::Bytes(
        {bias_.ScratchFloats(s.filter_out), PackScratch(s), PaddedVolume(s).Floats()});
  }
  std::string Route() const override { return absl::StrCat("implicit GEMM, ", NativeRoute(gemm_)); }
  bool NeedsInput(int i) const override { return i != 1 || packed_groups_ == 0; }
  size_t PackedBytes() const override { return packed_.size(); }

  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView &in = ctx.in(0), &out = ctx.out(0);
    if (out.elements() == 0) return absl::OkStatus();
    const ConvNdSizes s(conv_, in.shape, ctx.in(1).shape, out.shape, true);
    FLOE_RETURN_IF_ERROR(CheckConvNd(conv_, s, out.shape));
    FLOE_RETURN_IF_ERROR(CheckBias(ctx, epilogue_, s.result_channels));
    const PaddedVolume volume(s);
    ScratchPieces pieces(ctx.scratch);
    const float* bias = bias_.Padded(ctx, s.filter_out, pieces);
    const float* weights = reinterpret_cast<const float*>(packed_.data());
    if (s.groups() != packed_groups_) {
      float* packed = pieces.Floats(PackScratch(s));
      PackGroups(gemm_, ctx.in(1).as<float>(), s.groups(), s.tap_count() * s.filter_in,
                 s.filter_out / s.groups(), packed);
      weights = packed;
    }
    float* padded = pieces.Floats(volume.Floats());
    for (int64_t n = 0; n < s.images; ++n) {
      const float* x = in.as<float>() + n * s.image_pixels * s.channels;
      if (!volume.as_it_is) {
        Pad(s, volume, x, padded, ctx.pool);
        x = padded;
      }
      float* y = out.as<float>() + n * s.result_pixels * s.filter_out;
      FLOE_RETURN_IF_ERROR(Multiply(s, volume, x, weights, bias, y, *ctx.pool));
    }
    return absl::OkStatus();
  }

 private:
  // One matrix for each group: [taps x filter_in, outputs of the group].
  int64_t PackedFloats(int64_t k, int64_t filter_out, int64_t groups) const {
    return groups * gemm_.PackedFloats(k, filter_out / groups);
  }
  int64_t PackScratch(const ConvNdSizes& s) const {
    if (s.groups() == packed_groups_ || s.filter_out % s.groups() != 0) return 0;
    return PackedFloats(s.tap_count() * s.filter_in, s.filter_out, s.groups());
  }

  static void Pad(const ConvNdSizes& s, const PaddedVolume& volume, const float* image, float* to,
                  ThreadPool* pool) {
    const int64_t floats = s.image[2] * s.channels, left = volume.before[2] * s.channels;
    ParallelRange(pool, volume.size[0] * volume.size[1],
                  std::max<int64_t>(1, kElementGrain / volume.row()),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t z = i / volume.size[1] - volume.before[0],
                                    y = i % volume.size[1] - volume.before[1];
                      float* row = to + i * volume.row();
                      if (z < 0 || z >= s.image[0] || y < 0 || y >= s.image[1]) {
                        std::fill_n(row, volume.row(), 0.0f);
                        continue;
                      }
                      std::fill_n(row, left, 0.0f);
                      std::copy_n(image + (z * s.image[1] + y) * floats, floats, row + left);
                      std::fill_n(row + left + floats, volume.row() - left - floats, 0.0f);
                    }
                  });
  }

  absl::Status Multiply(const ConvNdSizes& s, const PaddedVolume& volume, const float* image,
                        const float* weights, const float* bias, float* out,
                        ThreadPool& pool) const {
    GemmTask task;
    task.a = {nullptr, s.result[2], volume.stride[2] * s.channels, volume.stride[1] * volume.row()};
    const int64_t row_step = volume.dilation[1] * volume.row(),
                  plane_step = volume.dilation[0] * volume.plane();
    if (s.groups() == 1 && volume.dilation[2] == 1) {  // a filter row is one piece of memory
      task.runs = {s.taps[2] * s.channels, s.taps[0] * s.taps[1], s.taps[1], row_step, plane_step};
    } else {
      task.runs = {s.filter_in, s.tap_count(), s.taps[2], volume.dilation[2] * s.channels,
                   row_step,    s.taps[1],     plane_step};
    }
    task.n = s.filter_out / s.groups();
    task.ldc = s.filter_out;
    task.activation = epilogue_.activation;
    task.alpha = epilogue_.alpha;
    const float* first = image + volume.first[0] * volume.plane() + volume.first[1] * volume.row() +
                         volume.first[2] * s.channels;
    const int64_t rows = s.result[1] * s.result[2];
    task.b = weights;
    task.bias = bias;
    for (int64_t z = 0; z < s.result[0]; ++z) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      task.a.base = first + z * volume.stride[0] * volume.plane();
      task.c = out + z * rows * s.filter_out;
      FLOE_RETURN_IF_ERROR(RunGroups(gemm_, task, s.groups(), s.filter_in, rows, pool));
    }
    return absl::OkStatus();
  }

  const ops::ConvNd conv_;
  const Epilogue epilogue_;
  const GemmKernels gemm_;
  const BiasOperand bias_;
  int64_t packed_groups_ = 0;  // 0: not packed
  AlignedBuffer packed_;
};

}  // namespace

std::unique_ptr<Kernel> MakeVolumeConv(const KernelArgs& args, const ops::ConvNd& conv,
                                       const Epilogue& epilogue) {
  return std::make_unique<VolumeConv>(args, conv, epilogue);
}

}  // namespace floe::kernels
