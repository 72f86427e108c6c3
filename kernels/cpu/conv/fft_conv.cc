#include "kernels/cpu/conv/fft_conv.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/conv/conv_numbers.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/packed_memory.h"
#include "kernels/cpu/isa.h"

namespace floe::kernels {
namespace {

// Tiles that are multiplied together, so that the weights are read once for them. More would not
// stay in the caches.
constexpr int64_t kTilesTogether = 24, kSpectraFloats = 8 << 20;

constexpr int64_t kLine = kAlignment / sizeof(float);

// most[n] becomes the largest of most[n, n + taps), for n in [0, count): block by block, the
// largest from the right within a block and from the left within the next.
void SlideLargest(uint32_t* most, int64_t count, int64_t taps) {
  uint32_t right[kMostFftPoints], left[kMostFftPoints];
  const int64_t rows = count + taps - 1;
  for (int64_t begin = 0; begin < rows; begin += taps) {
    const int64_t end = std::min(rows, begin + taps);
    right[begin] = most[begin];
    for (int64_t n = begin + 1; n < end; ++n) right[n] = std::max(right[n - 1], most[n]);
    left[end - 1] = most[end - 1];
    for (int64_t n = end - 1; n > begin; --n) left[n - 1] = std::max(left[n], most[n - 1]);
  }
  for (int64_t n = 0; n < count; ++n) most[n] = std::max(left[n], right[n + taps - 1]);
}

// How a tile is computed.
enum class TileKind : uint8_t {
  kNone,    // it gives no results
  kFft,     // by its spectrum
  kZeros,   // the same, and some windows hold nothing but zeros
  kDirect,  // by the packed GEMM
};

// The sizes of one run.
struct FftSizes {
  FftSizes(const ConvSizes& s, const FftConvPlan& plan, const TileFft& fft,
           const FftKernels& kernels)
      : in(plan.along_h ? s.in_h : s.in_w),
        out(plan.along_h ? s.out_h : s.out_w),
        pad(plan.along_h ? s.pad_top : s.pad_left),
        stride(plan.along_h ? s.stride_h : s.stride_w),
        dilation(plan.along_h ? s.dilation_h : s.dilation_w),
        in_c(s.in_c),
        tiles_of_sequence(CeilDiv(CeilDiv(out, dilation), plan.tile())),
        tiles(std::min(dilation, out) * tiles_of_sequence),
        in_plane(CeilDiv(plan.width, kernels.block()) * kernels.block()),
        out_plane(CeilDiv(plan.columns, kernels.block()) * kernels.block()),
        in_spectrum(SpectrumFloats(fft, in_plane)),
        out_spectrum(SpectrumFloats(fft, out_plane)),
        together(Together()) {}

  int64_t Together() const {
    const int64_t most =
        std::clamp<int64_t>(kSpectraFloats / (in_spectrum + out_spectrum), 1, kTilesTogether);
    if (tiles < most) return most / tiles * tiles;  // whole images
    // No few tiles at the end, for which all weights would be read: about as many each time.
    constexpr int64_t kRows = 8;  // of the product's register tiles
    const int64_t even = CeilDiv(tiles, CeilDiv(tiles, most));
    return std::min(most, CeilDiv(even, kRows) * kRows);
  }

  // Equal places of neighbouring spectra must not lie in one set of a cache.
  static int64_t SpectrumFloats(const TileFft& fft, int64_t plane) {
    constexpr int64_t kSets = 64;
    const int64_t lines = CeilDiv(fft.planes() * plane, kLine);
    const int64_t wanted = (CeilDiv(plane, kLine) + 1) % kSets;
    return (lines + (wanted - lines % kSets + kSets) % kSets) * kLine;
  }

  int64_t in, out, pad, stride, dilation, in_c;
  int64_t tiles_of_sequence, tiles;   // of an image
  int64_t in_plane, out_plane;        // floats
  int64_t in_spectrum, out_spectrum;  // floats of all planes of a tile
  int64_t together;                   // tiles that are multiplied together
};

// Where a tile reads and writes.
struct Tile {
  const float* image;
  int64_t first;  // float of the image where row 0 begins; may be before it
  int64_t step;   // floats from row to row
  float* out;
  const float* residual = nullptr;  // laid out as `out`, or null
  int64_t count;                    // rows of the result
};

// Pieces of scratch.
struct Room {
  float* data;      // spectra
  float* products;  // spectra
  uint32_t* most;   // by tile and row: the largest value of a row, then of a window
  TileKind* kinds;
  float* rows;  // of a tile that is computed directly
};

class FftConv final : public Kernel {
 public:
  FftConv(const KernelArgs& args, const ops::ConvNd& window, const Epilogue& epilogue,
          const FftConvPlan& plan)
      : window_(window),
        epilogue_(epilogue),
        plan_(plan),
        gemm_(PickGemm()),
        fft_kernels_(PickFft()),
        fft_(plan.points),
        matrix_(gemm_.PackedFloats(plan.width, plan.columns)),
        direct_k_(args.inputs[1].constant.elements() / plan.columns),
        spectra_(PackedMemory(static_cast<size_t>(FftWeightPlanes(plan.points) * matrix_) *
                              sizeof(float))),
        direct_(PackedMemory(static_cast<size_t>(gemm_.PackedFloats(direct_k_, plan.columns)) *
                             sizeof(float))) {
    const auto* weights = args.inputs[1].constant.as<float>();
    PackGemm(gemm_, weights, plan.columns, 1, direct_k_, plan.columns, Floats(direct_));
    TransformWeights(weights);
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvSizes conv(window_, inputs[0], inputs[1], outputs[0]);
    if (conv.out_pixels() == 0) return 0;
    const FftSizes s(conv, plan_, fft_, fft_kernels_);
    return ScratchPieces::Bytes({BiasFloats(), s.together * s.in_spectrum,
                                 s.together * s.out_spectrum, s.together * plan_.points, s.together,
                                 plan_.points * plan_.width});
  }
  std::string Route() const override {
    return absl::StrCat("FFT of ", plan_.points, " points, ", NativeRoute(gemm_));
  }
  bool NeedsInput(int i) const override { return i != 1; }
  size_t PackedBytes() const override { return spectra_.size() + direct_.size(); }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes conv(window_, ctx.in(0).shape, ctx.in(1).shape, ctx.out(0).shape);
    FLOE_RETURN_IF_ERROR(CheckConv(conv, ctx, epilogue_, false));
    if (conv.images == 0 || conv.out_floats() == 0) return absl::OkStatus();
    const FftSizes s(conv, plan_, fft_, fft_kernels_);
    ScratchPieces pieces(ctx.scratch);
    const float* bias = Bias(ctx, pieces);
    Room room;
    room.data = pieces.Floats(s.together * s.in_spectrum);
    room.products = pieces.Floats(s.together * s.out_spectrum);
    room.most = reinterpret_cast<uint32_t*>(pieces.Floats(s.together * plan_.points));
    room.kinds = reinterpret_cast<TileKind*>(pieces.Floats(s.together));
    room.rows = pieces.Floats(plan_.points * plan_.width);
    const int64_t tiles = conv.images * s.tiles;
    for (int64_t begin = 0; begin < tiles; begin += s.together) {
      FLOE_RETURN_IF_ERROR(CheckRunTime());
      FLOE_RETURN_IF_ERROR(
          RunTiles(ctx, s, bias, room, begin, std::min(tiles, begin + s.together)));
    }
    return absl::OkStatus();
  }

 private:
  static float* Floats(const AlignedBuffer& buffer) {
    return reinterpret_cast<float*>(buffer.data());
  }

  // Whole blocks of the bias, with zeros behind.
  int64_t BiasFloats() const { return plan_.columns + fft_kernels_.block(); }
  const float* Bias(const KernelContext& ctx, ScratchPieces& pieces) const {
    float* bias = pieces.Floats(BiasFloats());
    std::fill_n(bias, BiasFloats(), 0.0f);
    if (epilogue_.has_bias()) std::copy_n(BiasOf<float>(ctx, epilogue_), plan_.columns, bias);
    return bias;
  }

  void TransformWeights(const float* weights) {
    const int64_t block = fft_kernels_.block(), all = gemm_.PaddedColumns(plan_.columns);
    std::vector<float> rows(static_cast<size_t>(plan_.points * block));
    for (int64_t column = 0; column < plan_.columns; column += block) {
      const int64_t width = std::min(block, all - column);
      const int64_t columns = std::min(block, plan_.columns - column);
      float* panel = Floats(spectra_) + column * plan_.width;
      for (int64_t c = 0; c < plan_.width; ++c, panel += width) {
        std::fill(rows.begin(), rows.end(), 0.0f);
        for (int64_t tap = 0; tap < plan_.taps && tap * plan_.width + c < direct_k_; ++tap) {
          std::copy_n(weights + (tap * plan_.width + c) * plan_.columns + column, columns,
                      rows.data() + tap * block);
        }
        fft_kernels_.weights(fft_, {rows.data(), block}, panel, matrix_, width);
      }
    }
  }

  Tile TileAt(const KernelContext& ctx, const FftSizes& s, int64_t i) const {
    const int64_t image = i / s.tiles, in_image = i % s.tiles;
    const int64_t sequence = in_image / s.tiles_of_sequence;
    const int64_t first = in_image % s.tiles_of_sequence * plan_.tile();  // of its sequence
    const int64_t of_sequence = CeilDiv(s.out - sequence, s.dilation);
    const int64_t out = sequence + first * s.dilation;
    Tile tile;
    tile.image = ctx.in(0).as<float>() + image * s.in * s.in_c;
    tile.first = (out * s.stride - s.pad) * s.in_c;
    tile.step = s.dilation > 1 ? s.dilation * s.in_c : plan_.width;
    const int64_t offset = (image * s.out + out) * plan_.columns;
    tile.out = ctx.out(0).as<float>() + offset;
    if (epilogue_.has_residual()) tile.residual = ResidualOf<float>(ctx, epilogue_) + offset;
    tile.count = std::min(plan_.tile(), of_sequence - first);
    return tile;
  }

  // Floats [from, to) of row n of a tile which lie in the image; from >= to: none.
  struct Inside {
    int64_t at, from, to;
    Inside(const FftSizes& s, const Tile& tile, int64_t n, int64_t begin, int64_t end)
        : at(tile.first + n * tile.step),
          from(std::max(begin, -at)),
          to(std::min(end, s.in * s.in_c - at)) {}
  };

  // Floats [begin, end) of the tile's rows, zeros where the image has none.
  void CopyRows(const FftSizes& s, const Tile& tile, int64_t begin, int64_t end, float* to,
                int64_t stride) const {
    for (int64_t n = 0; n < plan_.points; ++n, to += stride) {
      const Inside inside(s, tile, n, begin, end);
      std::fill_n(to, stride, 0.0f);
      if (inside.from < inside.to)
        std::copy(tile.image + inside.at + inside.from, tile.image + inside.at + inside.to,
                  to + inside.from - begin);
    }
  }

  // `most` gets the largest value of each window.
  TileKind Judge(const FftSizes& s, const Tile& tile, uint32_t* most) const {
    if (tile.count <= 0) return TileKind::kNone;
    static const uint32_t high = BitsOf(kFftLargest), low = BitsOf(kFftSmallest);
    const int64_t rows = tile.count + plan_.taps - 1;
    uint32_t largest = 0;
    for (int64_t n = 0; n < plan_.points; ++n) {
      const Inside inside(s, tile, n, 0, plan_.width);
      const uint32_t of_row =
          inside.from < inside.to
              ? fft_kernels_.largest(tile.image + inside.at + inside.from, inside.to - inside.from)
              : 0;
      if (n < rows) most[n] = of_row;
      largest = std::max(largest, of_row);
    }
    if (largest != 0 && (largest > high || largest < low)) return TileKind::kDirect;
    SlideLargest(most, tile.count, plan_.taps);
    const uint32_t least = BitsOf(static_cast<double>(NumberOf(largest)) / kFftRange);
    TileKind kind = TileKind::kFft;
    for (int64_t n = 0; n < tile.count; ++n) {
      if (most[n] == 0) kind = TileKind::kZeros;
      if (most[n] != 0 && most[n] < least) return TileKind::kDirect;
    }
    return kind;
  }

  static bool Transformed(TileKind kind) {
    return kind == TileKind::kFft || kind == TileKind::kZeros;
  }

  absl::Status RunTiles(const KernelContext& ctx, const FftSizes& s, const float* bias,
                        const Room& room, int64_t begin, int64_t end) const {
    const int64_t tiles = end - begin, block = fft_kernels_.block();
    ThreadPool& pool = *ctx.pool;
    pool.ParallelFor(tiles, [&](int64_t i) {
      room.kinds[i] = Judge(s, TileAt(ctx, s, begin + i), room.most + i * plan_.points);
    });
    if (std::any_of(room.kinds, room.kinds + tiles, Transformed)) {
      const int64_t in_blocks = s.in_plane / block, out_blocks = s.out_plane / block;
      pool.ParallelFor(tiles * in_blocks, [&](int64_t i) {
        const int64_t t = i / in_blocks, channel = i % in_blocks * block;
        if (Transformed(room.kinds[t]))
          TransformBlock(s, TileAt(ctx, s, begin + t), channel,
                         room.data + t * s.in_spectrum + channel);
      });
      FLOE_RETURN_IF_ERROR(Multiply(s, room, tiles, pool));
      pool.ParallelFor(tiles * out_blocks, [&](int64_t i) {
        const int64_t t = i / out_blocks, column = i % out_blocks * block;
        if (!Transformed(room.kinds[t])) return;
        const Tile tile = TileAt(ctx, s, begin + t);
        fft_kernels_.inverse(
            fft_, room.products + t * s.out_spectrum + column, s.out_plane,
            {tile.out + column, s.dilation * plan_.columns, tile.count,
             std::min(block, plan_.columns - column), bias + column,
             epilogue_.activation == Activation::kRelu && !epilogue_.has_residual()});
      });
    }
    for (int64_t i = 0; i < tiles; ++i)
      FLOE_RETURN_IF_ERROR(Finish(s, TileAt(ctx, s, begin + i), bias, room, i, pool));
    return absl::OkStatus();
  }

  void TransformBlock(const FftSizes& s, const Tile& tile, int64_t channel, float* to) const {
    const int64_t block = fft_kernels_.block(), end = std::min(plan_.width, channel + block);
    const int64_t first = tile.first + channel;
    const int64_t behind = first + (plan_.points - 1) * tile.step + block;
    if (end - channel == block && first >= 0 && behind <= s.in * s.in_c) {
      fft_kernels_.forward(fft_, {tile.image + first, tile.step}, to, s.in_plane);
      return;
    }
    alignas(kAlignment) float rows[kMostFftPoints * kMostFftBlock];
    CopyRows(s, tile, channel, end, rows, block);
    fft_kernels_.forward(fft_, {rows, block}, to, s.in_plane);
  }

  absl::Status Multiply(const FftSizes& s, const Room& room, int64_t tiles,
                        ThreadPool& pool) const {
    RunWatch watch;
    pool.ParallelFor(fft_.planes(), [&](int64_t p) {
      if (watch.Stopped()) return;
      GemmTask task;
      task.a = {room.data + p * s.in_plane, INT64_MAX, s.in_spectrum, 0};
      task.runs.length = plan_.width;
      const FftFactor factor = FactorOf(p, plan_.points);
      task.b = Floats(spectra_) + factor.b * matrix_;
      if (factor.minus >= 0) task.b_minus = Floats(spectra_) + factor.minus * matrix_;
      task.n = plan_.columns;
      task.c = room.products + p * s.out_plane;
      task.ldc = s.out_spectrum;
      gemm_.run(task, 0, tiles, 0, gemm_.panels(plan_.columns));
    });
    return watch.status();
  }

  // What a transformed tile has left, or the whole of another.
  absl::Status Finish(const FftSizes& s, const Tile& tile, const float* bias, const Room& room,
                      int64_t i, ThreadPool& pool) const {
    const TileKind kind = room.kinds[i];
    const int64_t ld = s.dilation * plan_.columns;
    if (kind == TileKind::kNone) return absl::OkStatus();
    if (kind == TileKind::kDirect) {
      CopyRows(s, tile, 0, plan_.width, room.rows, plan_.width);
      GemmTask task;
      task.a = {room.rows, INT64_MAX, plan_.width, 0};
      task.runs.length = direct_k_;
      task.b = Floats(direct_);
      task.bias = epilogue_.has_bias() ? bias : nullptr;
      task.n = plan_.columns;
      task.residual = tile.residual;
      task.c = tile.out;
      task.ldc = ld;
      task.activation = epilogue_.activation;
      task.alpha = epilogue_.alpha;
      return RunGemm(gemm_, task, tile.count, pool);
    }
    // What the inverse transform has done already: the bias, and Relu where nothing is added.
    const bool relu_done = epilogue_.activation == Activation::kRelu && !epilogue_.has_residual();
    if (kind == TileKind::kZeros) {
      Epilogue done;
      if (relu_done) done.activation = Activation::kRelu;
      for (int64_t n = 0; n < tile.count; ++n) {
        if (room.most[i * plan_.points + n] != 0) continue;
        std::fill_n(tile.out + n * ld, plan_.columns, 0.0f);
        gemm_.finish(done, bias, nullptr, tile.out + n * ld, 1, plan_.columns, ld);
      }
    }
    if (!relu_done && (epilogue_.activation != Activation::kNone || epilogue_.has_residual())) {
      gemm_.finish(epilogue_, nullptr, tile.residual, tile.out, tile.count, plan_.columns, ld);
    }
    return absl::OkStatus();
  }

  const ops::ConvNd window_;
  const Epilogue epilogue_;
  const FftConvPlan plan_;
  const GemmKernels gemm_;
  const FftKernels fft_kernels_;
  const TileFft fft_;
  const int64_t matrix_;    // floats of one packed plane of the weights
  const int64_t direct_k_;  // floats under the filter
  AlignedBuffer spectra_, direct_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeFftConv(const KernelArgs& args,
                                                    const ops::ConvNd& window,
                                                    const Epilogue& epilogue,
                                                    const FftConvPlan& plan) {
  const GemmKernels gemm = PickGemm();
  const int64_t bytes = FftWeightPlanes(plan.points) * gemm.PackedFloats(plan.width, plan.columns) *
                        static_cast<int64_t>(sizeof(float));
  FLOE_RETURN_IF_ERROR(
      Annotate(CheckMemory(bytes),
               "transformed weights of a convolution; the model's key `fft: off` or "
               "`--route NODE=gemm` needs less memory"));
  return std::make_unique<FftConv>(args, window, epilogue, plan);
}

}  // namespace floe::kernels
