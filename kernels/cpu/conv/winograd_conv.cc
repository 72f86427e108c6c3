#include "kernels/cpu/conv/winograd_conv.h"

#include <algorithm>

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

// Floats of transformed pixels and of products that are made together: they stay in the second
// cache between the steps.
constexpr int64_t kTogetherFloats = 240 << 10;
// Fewer tiles would read the weights too often, more reuse them no better.
constexpr int64_t kFewestTogether = 16, kMostTogether = 96;
// Below this many multiply-adds of a block, waking other threads four times costs more than it
// saves.
constexpr int64_t kWinogradSerialBelow = 1'000'000;

constexpr int64_t kWinogradLine = kAlignment / sizeof(float);

// The sizes of one run. A block of tiles is a part of one image, or some whole images.
struct WinogradSizes {
  WinogradSizes(const ConvSizes& conv, const WinogradForm& form)
      : s(conv),
        tiles_x(CeilDiv(conv.out_w, form.w.tile)),
        tiles(CeilDiv(conv.out_h, form.h.tile) * tiles_x),
        in_row(CeilDiv(conv.in_c, kWinogradLine) * kWinogradLine),
        out_row(CeilDiv(conv.out_c, kWinogradLine) * kWinogradLine) {
    const int64_t most = std::clamp(kTogetherFloats / (form.points() * (in_row + out_row)),
                                    kFewestTogether, kMostTogether);
    images_together = std::max<int64_t>(1, most / tiles);
    together = tiles <= most ? images_together * tiles : CeilDiv(tiles, CeilDiv(tiles, most));
    in_plane = Plane(together * in_row);
    out_plane = Plane(together * out_row);
  }

  // Equal places of neighbouring planes must not lie in one set of a cache.
  static int64_t Plane(int64_t floats) {
    return (CeilDiv(floats, kWinogradLine) | 1) * kWinogradLine;
  }

  int64_t pixels() const { return s.in_h * s.in_w; }

  const ConvSizes s;
  int64_t tiles_x, tiles;   // of an image
  int64_t in_row, out_row;  // floats of a tile in a plane
  int64_t images_together, together;
  int64_t in_plane, out_plane;  // floats
};

// How a tile is computed.
enum class WinogradTileKind : uint8_t {
  kTransformed,
  kZeros,   // the same, and some windows hold nothing but zeros
  kDirect,  // by plain sums
};

// One tile of one image.
struct WinogradTile {
  int64_t image;
  int64_t y, x;           // of its first pixel; may be before the image
  int64_t rows, columns;  // of the result
};

// Pieces of scratch.
struct WinogradRoom {
  float* zeros;     // a pixel beside the image
  float* data;      // planes of transformed pixels
  float* products;  // planes
  uint32_t* most;   // the largest value of each pixel
  WinogradTileKind* kinds;
};

// Tiles [begin, end) of the images from `image` on.
struct Block {
  int64_t image, begin, end;
  int64_t count() const { return end - begin; }
};

class WinogradConv final : public Kernel {
 public:
  WinogradConv(const KernelArgs& args, const ops::ConvNd& window, const Epilogue& epilogue,
               const WinogradPlan& plan)
      : window_(window),
        epilogue_(epilogue),
        form_(plan.form),
        gemm_(PickGemm()),
        largest_(PickLargestOfPixels()),
        bias_(args, epilogue, gemm_),
        matrix_(gemm_.PackedFloats(plan.channels, plan.columns)),
        weights_(PackedMemory(static_cast<size_t>(plan.WeightBytes()))) {
    form_.weights(args.inputs[1].constant.as<float>(), plan.channels, plan.columns,
                  reinterpret_cast<float*>(weights_.data()), matrix_);
  }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvSizes conv(window_, inputs[0], inputs[1], outputs[0]);
    if (conv.out_pixels() == 0) return 0;
    const WinogradSizes s(conv, form_);
    return ScratchPieces::Bytes({bias_.ScratchFloats(conv.out_c), s.in_row,
                                 form_.points() * s.in_plane, form_.points() * s.out_plane,
                                 s.images_together * s.pixels(), s.together});
  }
  std::string Route() const override {
    return absl::StrCat("Winograd ", form_.h.tile, "x", form_.w.tile, " of ", form_.h.taps, "x",
                        form_.w.taps, ", ", NativeRoute(gemm_));
  }
  size_t PackedBytes() const override { return weights_.size(); }
  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return i == 0;
  }
  // A tile takes the residual as it makes the result.
  bool WritesSpacedLines() const override { return !epilogue_.has_residual(); }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes conv(window_, ctx);
    FLOE_RETURN_IF_ERROR(CheckConv(conv, ctx, epilogue_, false));
    if (conv.images == 0 || conv.out_floats() == 0) return absl::OkStatus();
    const WinogradSizes s(conv, form_);
    ScratchPieces pieces(ctx.scratch);
    const float* bias = bias_.Padded(ctx, conv.out_c, pieces);
    WinogradRoom room;
    room.zeros = pieces.Floats(s.in_row);
    room.data = pieces.Floats(form_.points() * s.in_plane);
    room.products = pieces.Floats(form_.points() * s.out_plane);
    room.most = reinterpret_cast<uint32_t*>(pieces.Floats(s.images_together * s.pixels()));
    room.kinds = reinterpret_cast<WinogradTileKind*>(pieces.Floats(s.together));
    std::fill_n(room.zeros, s.in_row, 0.0f);
    for (int64_t image = 0; image < conv.images; image += s.images_together) {
      const int64_t images = std::min(s.images_together, conv.images - image);
      FindLargest(ctx, s, room, image, images);
      for (int64_t begin = 0; begin < images * s.tiles; begin += s.together) {
        const Block block = {image, begin, std::min(images * s.tiles, begin + s.together)};
        FLOE_RETURN_IF_ERROR(RunBlock(ctx, s, bias, room, block));
      }
    }
    return absl::OkStatus();
  }

 private:
  void FindLargest(const KernelContext& ctx, const WinogradSizes& s, const WinogradRoom& room,
                   int64_t image, int64_t images) const {
    const float* pixels = ctx.in(0).as<float>() + image * s.s.image_floats();
    const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, s.s.in_c));
    ParallelRange(ctx.pool, images * s.pixels(), grain, [&](int64_t begin, int64_t end) {
      largest_(pixels + begin * s.s.in_pixel, end - begin, s.s.in_c, s.s.in_pixel,
               room.most + begin);
    });
  }

  WinogradTile TileAt(const WinogradSizes& s, const Block& block, int64_t i) const {
    const int64_t tile = (block.begin + i) % s.tiles;
    const int64_t y = tile / s.tiles_x * form_.h.tile, x = tile % s.tiles_x * form_.w.tile;
    return {(block.begin + i) / s.tiles, y - s.s.pad_top, x - s.s.pad_left,
            std::min<int64_t>(form_.h.tile, s.s.out_h - y),
            std::min<int64_t>(form_.w.tile, s.s.out_w - x)};
  }

  // to[i] = from(index of pixel i of the tile in its image), or `outside` beside the image.
  template <class T, class From>
  void ForPixels(const WinogradSizes& s, const WinogradTile& tile, T outside, T* to,
                 const From& from) const {
    const int height = form_.h.points(), width = form_.w.points();
    const int64_t first = std::max<int64_t>(0, -tile.x),
                  last = std::min<int64_t>(width, s.s.in_w - tile.x);
    for (int64_t y = tile.y; y < tile.y + height; ++y, to += width) {
      const bool inside = y >= 0 && y < s.s.in_h;
      const int64_t row = y * s.s.in_w + tile.x;
      for (int64_t x = 0; x < width; ++x)
        to[x] = inside && x >= first && x < last ? from(row + x) : outside;
    }
  }

  using Pixels = const float* [kMostWinogradPoints];
  void FindPixels(const KernelContext& ctx, const WinogradSizes& s, const WinogradRoom& room,
                  const Block& block, const WinogradTile& tile, Pixels& pixels) const {
    const float* image = ctx.in(0).as<float>() + (block.image + tile.image) * s.s.image_floats();
    const int64_t pixel = s.s.in_pixel;
    ForPixels<const float*>(s, tile, room.zeros, pixels,
                            [&](int64_t at) { return image + at * pixel; });
  }

  WinogradResult ResultOf(const KernelContext& ctx, const WinogradSizes& s, const float* bias,
                          const Block& block, const WinogradTile& tile) const {
    const int64_t y = tile.y + s.s.pad_top, x = tile.x + s.s.pad_left;
    WinogradResult result;
    const int64_t offset =
        (block.image + tile.image) * s.s.out_floats() + (y * s.s.out_w + x) * s.s.out_pixel;
    result.base = ctx.out(0).as<float>() + offset;
    if (epilogue_.has_residual()) result.residual = ResidualOf<float>(ctx, epilogue_) + offset;
    result.row_stride = s.s.out_w * s.s.out_pixel;
    result.column_stride = s.s.out_pixel;
    result.rows = tile.rows;
    result.columns = tile.columns;
    result.channels = s.s.out_c;
    result.bias = bias;
    result.activation = epilogue_.activation;
    result.alpha = epilogue_.alpha;
    return result;
  }

  // The largest value under the filter at place (y, x) of the tile of the result.
  uint32_t LargestUnder(const uint32_t* most, int64_t y, int64_t x) const {
    uint32_t largest = 0;
    for (int i = 0; i < form_.h.taps; ++i) {
      for (int j = 0; j < form_.w.taps; ++j)
        largest = std::max(largest, most[(y + i) * form_.w.points() + x + j]);
    }
    return largest;
  }

  void FindMost(const WinogradSizes& s, const WinogradRoom& room, const WinogradTile& tile,
                uint32_t* most) const {
    const uint32_t* of_image = room.most + tile.image * s.pixels();
    ForPixels<uint32_t>(s, tile, 0, most, [&](int64_t at) { return of_image[at]; });
  }

  WinogradTileKind Judge(const WinogradSizes& s, const WinogradRoom& room,
                         const WinogradTile& tile) const {
    static const uint32_t high = BitsOf(kWinogradLargest), low = BitsOf(kWinogradSmallest);
    uint32_t most[kMostWinogradPoints];
    FindMost(s, room, tile, most);
    uint32_t largest = 0, smallest = UINT32_MAX;
    for (int i = 0; i < form_.points(); ++i) {
      largest = std::max(largest, most[i]);
      smallest = std::min(smallest, most[i]);
    }
    if (largest != 0 && (largest > high || largest < low)) return WinogradTileKind::kDirect;
    const uint32_t least = BitsOf(static_cast<double>(NumberOf(largest)) / kWinogradRange);
    if (smallest >= std::max(least, low)) return WinogradTileKind::kTransformed;
    WinogradTileKind kind = WinogradTileKind::kTransformed;
    for (int64_t y = 0; y < tile.rows; ++y) {
      for (int64_t x = 0; x < tile.columns; ++x) {
        const uint32_t window = LargestUnder(most, y, x);
        if (window == 0) kind = WinogradTileKind::kZeros;
        if (window != 0 && window < least) return WinogradTileKind::kDirect;
      }
    }
    return kind;
  }

  // A pool's loop, or a plain one where there is too little to do.
  template <class Body>
  static void For(const KernelContext& ctx, bool alone, int64_t n, const Body& body) {
    if (!alone) return ctx.pool->ParallelFor(n, body);
    for (int64_t i = 0; i < n; ++i) body(i);
  }

  absl::Status RunBlock(const KernelContext& ctx, const WinogradSizes& s, const float* bias,
                        const WinogradRoom& room, const Block& block) const {
    RunWatch watch;
    const bool alone = ctx.pool->threads() == 1 ||
                       block.count() * form_.points() * s.s.in_c * s.s.out_c < kWinogradSerialBelow;
    For(ctx, alone, block.count(), [&](int64_t i) {
      const WinogradTile tile = TileAt(s, block, i);
      room.kinds[i] = Judge(s, room, tile);
      if (room.kinds[i] == WinogradTileKind::kDirect) return;
      Pixels pixels;
      FindPixels(ctx, s, room, block, tile, pixels);
      form_.input(pixels, s.s.in_c, room.data + i * s.in_row, s.in_plane);
    });
    if (std::any_of(room.kinds, room.kinds + block.count(),
                    [](WinogradTileKind kind) { return kind != WinogradTileKind::kDirect; })) {
      Multiply(ctx, s, room, block.count(), alone, &watch);
    }
    For(ctx, alone, block.count(), [&](int64_t i) {
      const bool direct = room.kinds[i] == WinogradTileKind::kDirect;
      if (direct && watch.Stopped()) return;
      const WinogradTile tile = TileAt(s, block, i);
      const WinogradResult result = ResultOf(ctx, s, bias, block, tile);
      if (direct) {
        Pixels pixels;
        FindPixels(ctx, s, room, block, tile, pixels);
        form_.direct(pixels, ctx.in(1).as<float>(), s.s.in_c, result);
        return;
      }
      form_.output(room.products + i * s.out_row, s.out_plane, result);
      if (room.kinds[i] == WinogradTileKind::kZeros) FillZeros(s, room, tile, result);
    });
    if (watch.Stopped()) return watch.status();
    return absl::OkStatus();
  }

  void Multiply(const KernelContext& ctx, const WinogradSizes& s, const WinogradRoom& room,
                int64_t tiles, bool alone, RunWatch* watch) const {
    const int64_t panels = gemm_.panels(s.s.out_c);
    // About four chunks a thread even out their speeds.
    const int64_t split =
        alone ? 1
              : std::clamp<int64_t>(CeilDiv(4 * ctx.pool->threads(), form_.points()), 1, panels);
    const int64_t step = CeilDiv(panels, split);
    For(ctx, alone, form_.points() * split, [&](int64_t i) {
      if (watch->Stopped()) return;
      const int64_t point = i / split, panel = i % split * step;
      GemmTask task;
      task.a = {room.data + point * s.in_plane, INT64_MAX, s.in_row, 0};
      task.runs.length = s.s.in_c;
      task.b = reinterpret_cast<const float*>(weights_.data()) + point * matrix_;
      task.n = gemm_.PaddedColumns(s.s.out_c);
      task.c = room.products + point * s.out_plane;
      task.ldc = s.out_row;
      if (panel < panels) gemm_.run(task, 0, tiles, panel, std::min(panels, panel + step));
    });
  }

  // Results under nothing but zeros become what zero gives.
  void FillZeros(const WinogradSizes& s, const WinogradRoom& room, const WinogradTile& tile,
                 const WinogradResult& result) const {
    uint32_t most[kMostWinogradPoints];
    FindMost(s, room, tile, most);
    for (int64_t y = 0; y < tile.rows; ++y) {
      for (int64_t x = 0; x < tile.columns; ++x) {
        if (LargestUnder(most, y, x) != 0) continue;
        const int64_t offset = y * result.row_stride + x * result.column_stride;
        float* pixel = result.base + offset;
        const float* residual = result.residual == nullptr ? nullptr : result.residual + offset;
        std::fill_n(pixel, result.channels, 0.0f);
        gemm_.finish(epilogue_, result.bias, residual, pixel, 1, result.channels, result.channels);
      }
    }
  }

  const ops::ConvNd window_;
  const Epilogue epilogue_;
  const WinogradForm form_;
  const GemmKernels gemm_;
  const LargestOfPixels largest_;
  const BiasOperand bias_;
  const int64_t matrix_;  // floats of one packed plane of the weights
  AlignedBuffer weights_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeWinogradConv(const KernelArgs& args,
                                                         const ops::ConvNd& window,
                                                         const Epilogue& epilogue,
                                                         const WinogradPlan& plan) {
  FLOE_RETURN_IF_ERROR(
      Annotate(CheckMemory(plan.WeightBytes()),
               "transformed weights of a convolution; `--route NODE=gemm` and the key `cpu.gemm: "
               "native` need less memory"));
  return std::make_unique<WinogradConv>(args, window, epilogue, plan);
}

}  // namespace floe::kernels
