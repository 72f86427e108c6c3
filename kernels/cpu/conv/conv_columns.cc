// Gradients of convolutions through columns: a line of the result meets the image in a matrix of
// one row for each result pixel and one column for each tap and channel. The gradient is multiplied
// by the transposed filter, and the columns are added to the image. Blocks of lines bound the
// memory; within an element the order of additions does not depend on them, nor on threads.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/conv/conv_nd.h"
#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

using ops::ConvNd;

constexpr int64_t kColumnFloats = 1 << 19;  // of columns, about what a second-level cache holds

class ColumnsConv final : public Kernel {
 public:
  ColumnsConv(const KernelArgs& args, const ConvNd& conv, const Epilogue& epilogue)
      : conv_(conv), epilogue_(epilogue), gemm_(PickGemm()) {
    if (!args.inputs[1].has_constant()) return;
    const Tensor& filter = args.inputs[1].constant;
    const int64_t filter_in = filter.shape().dim(conv.spatial),
                  filter_out = filter.shape().dim(conv.spatial + 1);
    const int64_t channels = ImageChannels(args, conv);
    groups_known_ = channels >= 0;
    const int64_t groups = groups_known_ && filter_in > 0 ? channels / filter_in : 1;
    if (filter.elements() == 0 || groups == 0 || filter_out % groups != 0) return;
    packed_groups_ = groups;
    const int64_t taps = filter.elements() / (filter_in * filter_out);
    packed_ = PackedMemory(PackedFloats(taps, filter_in, filter_out, groups) * sizeof(float));
    Pack(filter.as<float>(), taps, filter_in, filter_out, groups,
         reinterpret_cast<float*>(packed_.data()));
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvNdSizes s(conv_, outputs[0], inputs[1], inputs[2], false);
    if (s.filter_in == 0 || s.groups() == 0) return 0;
    return ScratchPieces::Bytes({PackScratch(s), ColumnFloats(s)});
  }
  std::string Route() const override { return absl::StrCat("columns, ", NativeRoute(gemm_)); }
  bool NeedsInput(int i) const override { return i != 1 || packed_groups_ == 0 || !groups_known_; }
  size_t PackedBytes() const override { return packed_.size(); }

  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& out = ctx.out(0);
    if (out.elements() == 0) return absl::OkStatus();
    const ConvNdSizes s(conv_, out.shape, ctx.in(1).shape, ctx.in(2).shape, false);
    FLOE_RETURN_IF_ERROR(CheckBackward(conv_, s, ctx, epilogue_));
    const float* bias = BiasOf<float>(ctx, epilogue_);
    ScratchPieces pieces(ctx.scratch);
    const float* weights = Weights(ctx, s, pieces);
    float* columns = pieces.Floats(ColumnFloats(s));
    for (int64_t n = 0; n < s.images; ++n) {
      float* image = out.as<float>() + n * s.image_pixels * s.channels;
      const float* result = ctx.in(2).as<float>() + n * s.result_pixels * s.result_channels;
      FLOE_RETURN_IF_ERROR(RunImage(s, result, weights, columns, image, ctx.pool));
      gemm_.finish(epilogue_, bias, nullptr, image, s.image_pixels, s.channels, s.channels);
    }
    return absl::OkStatus();
  }

 private:
  // One matrix for each group: the transposed [taps * filter_in, outputs of the group].
  int64_t PackedFloats(int64_t taps, int64_t filter_in, int64_t filter_out, int64_t groups) const {
    return groups * gemm_.PackedFloats(filter_out / groups, taps * filter_in);
  }

  void Pack(const float* filter, int64_t taps, int64_t filter_in, int64_t filter_out,
            int64_t groups, float* to) const {
    const int64_t wide = taps * filter_in, narrow = filter_out / groups;
    for (int64_t g = 0; g < groups; ++g)
      PackGemm(gemm_, filter + g * narrow, 1, filter_out, narrow, wide,
               to + g * gemm_.PackedFloats(narrow, wide));
  }

  int64_t PackScratch(const ConvNdSizes& s) const {
    if (s.groups() == packed_groups_) return 0;
    return PackedFloats(s.tap_count(), s.filter_in, s.filter_out, s.groups());
  }

  const float* Weights(const KernelContext& ctx, const ConvNdSizes& s,
                       ScratchPieces& pieces) const {
    if (s.groups() == packed_groups_) return reinterpret_cast<const float*>(packed_.data());
    float* packed = pieces.Floats(PackScratch(s));
    Pack(ctx.in(1).as<float>(), s.tap_count(), s.filter_in, s.filter_out, s.groups(), packed);
    return packed;
  }

  // Result lines (of result[2] pixels) in a block.
  static int64_t BlockLines(const ConvNdSizes& s) {
    const int64_t line = ScratchFloats({s.result[2], s.tap_count(), s.filter_in});
    const int64_t lines = s.result[0] * s.result[1];
    return std::clamp<int64_t>(line == 0 ? lines : kColumnFloats / line, 1,
                               std::max<int64_t>(lines, 1));
  }
  static int64_t ColumnFloats(const ConvNdSizes& s) {
    return ScratchFloats({BlockLines(s), s.result[2], s.tap_count(), s.filter_in});
  }

  // C = A * B of one group for the pixels of lines [first, last).
  absl::Status Multiply(const float* a, int64_t a_step, const float* b, int64_t k, int64_t n,
                        float* c, int64_t c_step, int64_t rows, ThreadPool* pool) const {
    GemmTask task;
    task.a = {a, INT64_MAX, a_step, 0};
    task.runs.length = k;
    task.b = b;
    task.n = n;
    task.c = c;
    task.ldc = c_step;
    return RunGemm(gemm_, task, rows, *pool);
  }

  absl::Status RunImage(const ConvNdSizes& s, const float* result, const float* weights,
                        float* columns, float* image, ThreadPool* pool) const {
    const int64_t wide = s.tap_count() * s.filter_in, narrow = s.filter_out / s.groups();
    const int64_t lines = s.result[0] * s.result[1], step = BlockLines(s);
    std::fill_n(image, s.image_pixels * s.channels, 0.0f);
    for (int64_t first = 0; first < lines; first += step) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      const int64_t last = std::min(lines, first + step);
      for (int64_t g = 0; g < s.groups(); ++g) {
        FLOE_RETURN_IF_ERROR(Multiply(result + first * s.result[2] * s.filter_out + g * narrow,
                                      s.filter_out, weights + g * gemm_.PackedFloats(narrow, wide),
                                      narrow, wide, columns, wide, (last - first) * s.result[2],
                                      pool));
        float* to = image + g * s.filter_in;
        ParallelRange(pool, s.image[0] * s.image[1], 1, [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line)
            ScatterLine(s, columns, first, last, line, to);
        });
      }
    }
    return absl::OkStatus();
  }

  // The tap that joins a place of the image to a place of the result along dim k; -1: none.
  static int64_t TapOf(const ConvNdSizes& s, int k, int64_t image, int64_t result) {
    const int64_t steps = image + s.low[k] - result * s.stride[k];
    if (steps < 0 || steps % s.dilation[k] != 0) return -1;
    const int64_t tap = steps / s.dilation[k];
    return tap < s.taps[k] ? tap : -1;
  }

  // Places of the result along dim k that a tap may join to a place of the image.
  struct Range {
    int64_t begin, end;
    Range(const ConvNdSizes& s, int k, int64_t image) {
      const int64_t last = image + s.low[k], first = last - (s.taps[k] - 1) * s.dilation[k];
      begin = first > 0 ? (first + s.stride[k] - 1) / s.stride[k] : 0;
      end = last < 0 ? 0 : std::min(s.result[k], last / s.stride[k] + 1);
    }
  };

  // Adds to image line `line` the columns of result lines [first, last).
  void ScatterLine(const ConvNdSizes& s, const float* columns, int64_t first, int64_t last,
                   int64_t line, float* image) const {
    const int64_t z = line / s.image[1], y = line % s.image[1];
    const Range planes(s, 0, z), lines(s, 1, y);
    const int64_t wide = s.tap_count() * s.filter_in;
    float* to = image + line * s.image[2] * s.channels;
    for (int64_t from_z = planes.begin; from_z < planes.end; ++from_z) {
      for (int64_t from_y = lines.begin; from_y < lines.end; ++from_y) {
        const int64_t from = from_z * s.result[1] + from_y, kz = TapOf(s, 0, z, from_z),
                      ky = TapOf(s, 1, y, from_y);
        if (from < first || from >= last || kz < 0 || ky < 0) continue;
        const float* row = columns + (from - first) * s.result[2] * wide +
                           (kz * s.taps[1] + ky) * s.taps[2] * s.filter_in;
        for (int64_t o = 0; o < s.result[2]; ++o, row += wide)
          ScatterPixel(s, row, o * s.stride[2] - s.low[2], to);
      }
    }
  }

  // One row of taps, the first of which meets pixel x of a line. Neighbours lie side by side.
  void ScatterPixel(const ConvNdSizes& s, const float* row, int64_t x, float* line) const {
    if (s.groups() == 1 && s.dilation[2] == 1) {
      const int64_t begin = std::max<int64_t>(0, -x), end = std::min(s.taps[2], s.image[2] - x);
      if (begin < end)
        Add(row + begin * s.channels, (end - begin) * s.channels, line + (x + begin) * s.channels);
      return;
    }
    for (int64_t kx = 0; kx < s.taps[2]; ++kx, x += s.dilation[2]) {
      if (x >= 0 && x < s.image[2]) Add(row + kx * s.filter_in, s.filter_in, line + x * s.channels);
    }
  }
  void Add(const float* what, int64_t n, float* to) const {
    add_(to, what, to, static_cast<size_t>(n));
  }

  const ConvNd conv_;
  const Epilogue epilogue_;
  const GemmKernels gemm_;
  const BinaryF32 add_ = FindBinaryF32("Add").vectors;
  int64_t packed_groups_ = 0;  // 0: not packed
  bool groups_known_ = false;
  AlignedBuffer packed_;
};

}  // namespace

std::unique_ptr<Kernel> MakeColumnsConv(const KernelArgs& args, const ConvNd& conv,
                                        const Epilogue& epilogue) {
  return std::make_unique<ColumnsConv>(args, conv, epilogue);
}

}  // namespace floe::kernels
