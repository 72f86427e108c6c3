// Conv2DBackpropInput as one ordinary convolution for each phase of the stride: the outputs whose
// place, with the padding, leaves the same remainder see the same taps. Nothing is scattered, and
// bias and activation are applied by the multiplication.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/conv/conv_nd.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

using ops::ConvNd;

constexpr int64_t kPhaseFloats = 1 << 17;  // of a phase's result that wait to be spread

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t SignedCeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

// Taps of remainder r among `taps` with this stride.
int64_t TapsOf(int64_t taps, int64_t r, int64_t stride) {
  return r < taps ? SignedCeilDiv(taps - r, stride) : 0;
}

// One axis. Output o = r - low + stride * q reads the inputs [q - taps + 1, q].
struct Phase {
  int64_t r, taps, first_q, count;
};
struct Axis {
  std::vector<Phase> phases;
  int64_t before = 0, padded;  // zeros in front of the input, and its size with zeros
  int64_t stride, low, in;

  Axis(int64_t out, int64_t in_size, int64_t taps, int64_t stride_size, int64_t low_pad)
      : padded(in_size), stride(stride_size), low(low_pad), in(in_size) {
    int64_t last = in - 1;
    for (int64_t r = 0; r < stride; ++r) {
      const int64_t first_q = SignedCeilDiv(low - r, stride),
                    last_q = FloorDiv(out - 1 + low - r, stride);
      if (last_q < first_q) continue;
      phases.push_back({r, TapsOf(taps, r, stride), first_q, last_q - first_q + 1});
      if (phases.back().taps == 0) continue;
      before = std::max(before, phases.back().taps - 1 - first_q);
      last = std::max(last, last_q);
    }
    padded = before + last + 1;
  }
  int64_t Output(const Phase& phase, int64_t i) const {
    return phase.r - low + stride * (phase.first_q + i);
  }
  // Where the input of the phase's first output begins.
  int64_t Input(const Phase& phase) const { return phase.first_q - phase.taps + 1 + before; }
};

struct Plan {
  ConvNdSizes s;
  Axis rows, columns;
  explicit Plan(const ConvNdSizes& sizes)
      : s(sizes),
        rows(s.image[1], s.result[1], s.taps[1], s.stride[1], s.low[1]),
        columns(s.image[2], s.result[2], s.taps[2], s.stride[2], s.low[2]) {}

  bool needs_padding() const { return rows.padded != rows.in || columns.padded != columns.in; }
  int64_t PaddedFloats() const {
    return needs_padding() ? ScratchFloats({rows.padded, columns.padded, s.result_channels}) : 0;
  }
  int64_t LineFloats(const Phase& x) const { return ScratchFloats({x.count, s.channels}); }
  // Lines of a phase that are computed before they are spread.
  int64_t BlockLines(const Phase& y, const Phase& x) const {
    return std::clamp<int64_t>(kPhaseFloats / std::max<int64_t>(LineFloats(x), 1), 1, y.count);
  }
  int64_t BlockFloats() const {
    int64_t most = 0;
    for (const Phase& y : rows.phases) {
      for (const Phase& x : columns.phases)
        most = std::max(most, ScratchFloats({BlockLines(y, x), x.count, s.channels}));
    }
    return most;
  }
};

class PhasesConv final : public Kernel {
 public:
  PhasesConv(const KernelArgs& args, const ConvNd& conv, const Epilogue& epilogue, bool one_group)
      : conv_(conv),
        epilogue_(epilogue),
        one_group_(one_group),
        gemm_(PickGemm()),
        bias_(args, epilogue, gemm_) {
    const Tensor& filter = args.inputs[1].constant;
    for (int i = 0; i < 2; ++i) taps_[i] = filter.shape().dim(i);
    out_channels_ = filter.shape().dim(2);
    in_channels_ = filter.shape().dim(3);
    int64_t floats = 0;
    for (int64_t ry = 0; ry < conv.stride[0]; ++ry) {
      for (int64_t rx = 0; rx < conv.stride[1]; ++rx) {
        offsets_.push_back(floats);
        floats += gemm_.PackedFloats(Inner(ry, rx), out_channels_);
      }
    }
    packed_ = PackedMemory(floats * sizeof(float));
    Pack(filter.as<float>());
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const Plan plan(ConvNdSizes(conv_, outputs[0], inputs[1], inputs[2], false));
    return ScratchPieces::Bytes(
        {bias_.ScratchFloats(out_channels_), plan.PaddedFloats(), plan.BlockFloats()});
  }
  std::string Route() const override { return absl::StrCat("phases, ", NativeRoute(gemm_)); }
  // Where there may be groups after all, the plain loops read the filter.
  bool NeedsInput(int i) const override { return i != 1 || !one_group_; }
  size_t PackedBytes() const override { return packed_.size(); }
  bool WritesSpacedLines() const override { return one_group_; }

  absl::Status Run(const KernelContext& ctx) const override {
    const TensorView& out = ctx.out(0);
    if (out.elements() == 0) return absl::OkStatus();
    const Plan plan(ConvNdSizes(conv_, out.shape, ctx.in(1).shape, ctx.in(2).shape, false));
    const ConvNdSizes& s = plan.s;
    FLOE_RETURN_IF_ERROR(CheckBackward(conv_, s, ctx, epilogue_));
    if (s.groups() != 1) return RunPlainBackward(conv_, epilogue_, ctx);
    ScratchPieces pieces(ctx.scratch);
    const float* bias = bias_.Padded(ctx, s.channels, pieces);
    float* padded = pieces.Floats(plan.PaddedFloats());
    float* block = pieces.Floats(plan.BlockFloats());
    for (int64_t n = 0; n < s.images; ++n) {
      const float* x = ctx.in(2).as<float>() + n * s.result_pixels * s.result_channels;
      if (padded != nullptr) {
        Padded(plan, x, padded);
        x = padded;
      }
      float* y = out.as<float>() + n * s.image_pixels * ctx.OutLineStride(0);
      for (const Phase& row : plan.rows.phases) {
        for (const Phase& column : plan.columns.phases) {
          FLOE_RETURN_IF_ERROR(CheckRunTime());
          FLOE_RETURN_IF_ERROR(RunPhase(plan, row, column, x, bias, block, y, ctx));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t Inner(int64_t ry, int64_t rx) const {
    return TapsOf(taps_[0], ry, conv_.stride[0]) * TapsOf(taps_[1], rx, conv_.stride[1]) *
           in_channels_;
  }

  // For each phase the matrix [taps in the order of the inputs x in_channels, out_channels].
  void Pack(const float* filter) {
    std::vector<float> turned;
    for (size_t phase = 0; phase < offsets_.size(); ++phase) {
      const int64_t ry = static_cast<int64_t>(phase) / conv_.stride[1],
                    rx = static_cast<int64_t>(phase) % conv_.stride[1];
      const int64_t rows = TapsOf(taps_[0], ry, conv_.stride[0]),
                    columns = TapsOf(taps_[1], rx, conv_.stride[1]), k = Inner(ry, rx);
      turned.resize(static_cast<size_t>(k * out_channels_));
      float* to = turned.data();
      for (int64_t n = 0; n < out_channels_; ++n) {
        for (int64_t y = rows - 1; y >= 0; --y) {
          for (int64_t x = columns - 1; x >= 0; --x, to += in_channels_) {
            const int64_t tap = (ry + y * conv_.stride[0]) * taps_[1] + rx + x * conv_.stride[1];
            std::copy_n(filter + (tap * out_channels_ + n) * in_channels_, in_channels_, to);
          }
        }
      }
      PackGemm(gemm_, turned.data(), 1, k, k, out_channels_, Packed(phase));
    }
  }
  float* Packed(size_t phase) const {
    return reinterpret_cast<float*>(packed_.data()) + offsets_[phase];
  }

  static void Padded(const Plan& plan, const float* image, float* to) {
    const Axis &rows = plan.rows, &columns = plan.columns;
    const int64_t channels = plan.s.result_channels, line = columns.padded * channels;
    std::fill_n(to, rows.padded * line, 0.0f);
    for (int64_t y = 0; y < rows.in; ++y) {
      std::copy_n(image + y * columns.in * channels, columns.in * channels,
                  to + (y + rows.before) * line + columns.before * channels);
    }
  }

  absl::Status RunPhase(const Plan& plan, const Phase& row, const Phase& column, const float* x,
                        const float* bias, float* block, float* y, const KernelContext& ctx) const {
    const ConvNdSizes& s = plan.s;
    const int64_t pixel = ctx.OutLineStride(0);
    const int64_t line = plan.columns.padded * s.result_channels;
    GemmTask task;
    task.a = {x + plan.rows.Input(row) * line + plan.columns.Input(column) * s.result_channels,
              column.count, s.result_channels, line};
    task.runs = {column.taps * s.result_channels, row.taps, 1, 0, line};
    task.b = Packed(static_cast<size_t>(row.r * conv_.stride[1] + column.r));
    task.bias = bias;
    task.n = task.ldc = s.channels;
    task.c = block;
    task.activation = epilogue_.activation;
    task.alpha = epilogue_.alpha;
    const int64_t lines = plan.BlockLines(row, column);
    for (int64_t first = 0; first < row.count; first += lines) {
      const int64_t count = std::min(lines, row.count - first);
      if (task.runs.k() == 0) {  // no tap comes here
        std::fill_n(block, count * plan.LineFloats(column), 0.0f);
        gemm_.finish(epilogue_, bias, nullptr, block, count * column.count, s.channels, s.channels);
      } else {
        FLOE_RETURN_IF_ERROR(RunGemm(gemm_, task, count * column.count, *ctx.pool));
        task.a.base += count * line;
      }
      ParallelRange(ctx.pool, count, std::max<int64_t>(1, kElementGrain / plan.LineFloats(column)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i)
                        Spread(plan, column, block + i * plan.LineFloats(column), pixel,
                               y + plan.rows.Output(row, first + i) * s.image[2] * pixel);
                    });
    }
    return absl::OkStatus();
  }

  // One line of a phase to its places in a line of the output, whose pixels begin `pixel` apart.
  static void Spread(const Plan& plan, const Phase& column, const float* from, int64_t pixel,
                     float* line) {
    const int64_t channels = plan.s.channels;
    for (int64_t i = 0; i < column.count; ++i, from += channels)
      std::copy_n(from, channels, line + plan.columns.Output(column, i) * pixel);
  }

  const ConvNd conv_;
  const Epilogue epilogue_;
  const bool one_group_;  // known when this was made
  const GemmKernels gemm_;
  const BiasOperand bias_;
  int64_t taps_[2], out_channels_, in_channels_;
  std::vector<int64_t> offsets_;  // by phase, floats into packed_
  AlignedBuffer packed_;
};

}  // namespace

bool PhasesFit(const KernelArgs& args, const ConvNd& conv) {
  constexpr int64_t kMostStride = 16;  // each phase has a matrix
  if (conv.spatial != 2 || !args.inputs[1].has_constant()) return false;
  const Tensor& filter = args.inputs[1].constant;
  const int64_t channels = ImageChannels(args, conv);
  for (int i = 0; i < 2; ++i) {
    if (conv.dilation[i] != 1 || conv.stride[i] > kMostStride) return false;
  }
  return filter.elements() != 0 && (channels < 0 || channels == filter.shape().dim(2));
}

std::unique_ptr<Kernel> MakePhasesConv(const KernelArgs& args, const ConvNd& conv,
                                       const Epilogue& epilogue) {
  return std::make_unique<PhasesConv>(args, conv, epilogue, ImageChannels(args, conv) >= 0);
}

}  // namespace floe::kernels
