#include "kernels/cuda/emit/winograd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/winograd_conv.h"
#include "kernels/cuda/emit/product.h"
#include "kernels/cuda/winograd_args.h"

namespace floe::cuda {
namespace {

using kernels::ConvSizes;

// A filter's line at the points of WinogradLine (winograd.cuh), in float64: rounded once, when all
// is done.
std::vector<double> FilterLine(int tile, const double (&w)[3]) {
  if (tile == 2) return {w[0], (w[0] + w[1] + w[2]) / 2, (w[0] - w[1] + w[2]) / 2, w[2]};
  const double a = 0.625, b = 1.5, aa = a * a, bb = b * b;
  const auto at = [&](double p, double scale) { return scale * (w[0] + p * w[1] + p * p * w[2]); };
  const double of_a = 1 / (2 * aa * (aa - bb)), of_b = 1 / (2 * bb * (bb - aa));
  return {w[0] / (aa * bb), at(a, of_a), at(-a, of_a), at(b, of_b), at(-b, of_b), w[2]};
}

// [points, channels, columns].
Tensor TransformedFilter(const Tensor& filter, int tile) {
  const int64_t channels = filter.shape().dim(2), n = filter.shape().dim(3), side = tile + 2;
  const int64_t columns = FactorColumns(n);
  Tensor result = AllocateFactors(side * side, channels, n);
  auto* const to = static_cast<float*>(result.mutable_data());
  for (int64_t i = 0; i < channels * n; ++i) {
    std::vector<double> rows[3];
    for (int y = 0; y < 3; ++y) {
      double w[3];
      for (int x = 0; x < 3; ++x) w[x] = filter.as<float>()[(y * 3 + x) * channels * n + i];
      rows[y] = FilterLine(tile, w);
    }
    for (int64_t x = 0; x < side; ++x) {
      const auto at = static_cast<size_t>(x);
      const std::vector<double> line = FilterLine(tile, {rows[0][at], rows[1][at], rows[2][at]});
      for (int64_t y = 0; y < side; ++y)
        to[((y * side + x) * channels + i / n) * columns + i % n] =
            static_cast<float>(line[static_cast<size_t>(y)]);
    }
  }
  return result;
}

class WinogradConvOnDevice final : public DeviceKernel {
 public:
  WinogradConvOnDevice(const KernelArgs& args, const ops::ConvNd& conv, int tile)
      : conv_(conv),
        epilogue_(EpilogueOf(args.node.attrs)),
        tile_(tile),
        weights_{TransformedFilter(args.inputs[1].constant, tile)} {}

  absl::Span<const Tensor> Weights() const override { return weights_; }
  std::string Route() const override {
    return absl::StrCat("Winograd ", tile_, "x", tile_, " of 3x3");
  }
  bool ReadsSpacedLines(int i, absl::Span<const Shape>, absl::Span<const Shape>) const override {
    return i == 0;
  }
  bool WritesSpacedLines() const override { return !epilogue_.has_residual(); }

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvSizes s(conv_, inputs[0], inputs[1], outputs[0]);
    return Pieces(s).end * static_cast<int64_t>(sizeof(float));
  }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    if (addresses.out(0).elements() == 0) return;
    const ConvSizes s(conv_, addresses);
    const ScratchPlaces at = Pieces(s);
    auto* const scratch = reinterpret_cast<float*>(addresses.scratch);
    WinogradArgs args = {};
    args.x = addresses.in(0).as<float>();
    args.x_pixel = s.in_pixel;
    args.x_image = s.image_floats();
    args.filter = addresses.in(1).as<float>();
    args.points = scratch;
    args.products = scratch + at.products;
    args.largest = reinterpret_cast<uint32_t*>(scratch + at.largest);
    args.kinds = reinterpret_cast<uint32_t*>(scratch + at.kinds);
    args.y = addresses.out(0).as<float>();
    args.y_pixel = s.out_pixel;
    args.y_row = s.out_w * s.out_pixel;
    args.y_image = s.out_floats();
    args.all_tiles = s.images * TilesOf(s);
    args.all_pixels = s.images * s.in_h * s.in_w;
    const int64_t numbers[4][2] = {{s.in_h, s.in_w},
                                   {s.out_h, s.out_w},
                                   {s.pad_top, s.pad_left},
                                   {Along(s.out_h), Along(s.out_w)}};
    int32_t(*const to[4])[2] = {&args.in, &args.out, &args.low, &args.tiles};
    for (int i = 0; i < 4; ++i) {
      for (int d = 0; d < 2; ++d) (*to[i])[d] = static_cast<int32_t>(numbers[i][d]);
    }
    args.channels = static_cast<int32_t>(s.in_c);
    args.outputs = static_cast<int32_t>(s.out_c);
    args.columns = static_cast<int32_t>(FactorColumns(s.out_c));
    args.range = static_cast<float>(kernels::kWinogradRange);
    args.most_bits = std::bit_cast<uint32_t>(static_cast<float>(kernels::kWinogradLargest));
    args.fewest_bits = std::bit_cast<uint32_t>(static_cast<float>(kernels::kWinogradSmallest));
    args.epilogue = EpilogueArgsOf(addresses, epilogue_);
    Append(args, KernelId::winograd_largest, KernelId::winograd_largest, args.all_pixels * 32,
           launches);
    Append(args, KernelId::winograd_judge_2, KernelId::winograd_judge_4, args.all_tiles, launches);
    Append(args, KernelId::winograd_input_2, KernelId::winograd_input_4, args.all_tiles * s.in_c,
           launches);
    AppendProducts(args, scratch + at.products, addresses.weight<float>(0), launches);
    Append(args, KernelId::winograd_output_2, KernelId::winograd_output_4, args.all_tiles * s.out_c,
           launches);
  }

 private:
  // Elements of the scratch; the points are at 0.
  struct ScratchPlaces {
    int64_t products, largest, kinds, end;
  };
  ScratchPlaces Pieces(const ConvSizes& s) const {
    const int64_t tiles = s.images * TilesOf(s), points = (tile_ + 2) * (tile_ + 2);
    ScratchPlaces at = {};
    at.products = points * tiles * s.in_c;
    at.largest = at.products + points * tiles * FactorColumns(s.out_c);
    at.kinds = at.largest + s.images * s.in_h * s.in_w;
    at.end = at.kinds + tiles;
    return at;
  }
  int64_t Along(int64_t results) const { return (results + tile_ - 1) / tile_; }
  int64_t TilesOf(const ConvSizes& s) const { return Along(s.out_h) * Along(s.out_w); }

  void Append(const WinogradArgs& args, KernelId of_two, KernelId of_four, int64_t threads,
              std::vector<Launch>* launches) const {
    launches->push_back(
        Launch::Of(tile_ == 2 ? of_two : of_four, {Blocks(threads, 256), 1, 1}, args));
  }

  void AppendProducts(const WinogradArgs& args, float* products, const float* filter,
                      std::vector<Launch>* launches) const {
    const int64_t points = (tile_ + 2) * (tile_ + 2);
    GemmArgs gemm = {};
    gemm.m = static_cast<int32_t>(args.all_tiles);
    gemm.k = args.channels;
    gemm.n = args.columns;
    gemm.a = args.points;
    gemm.a_row = args.channels;
    gemm.a_column = 1;
    gemm.a_vectors = true;  // channels are a multiple of 4
    gemm.b = PackedFactor(filter, args.columns);
    gemm.c = products;
    gemm.c_row = args.columns;
    gemm.c_batch = args.all_tiles * args.columns;
    gemm.c_vectors = true;
    std::fill_n(gemm.batch, kMaxBatchDims, 1);
    gemm.batch[kMaxBatchDims - 1] = static_cast<int32_t>(points);
    gemm.a_batch[kMaxBatchDims - 1] = args.all_tiles * args.channels;
    gemm.b_batch[kMaxBatchDims - 1] = int64_t{args.channels} * args.columns;
    AppendGemm(gemm, points, launches);
  }

  const ops::ConvNd conv_;
  const Epilogue epilogue_;
  const int tile_;
  const std::vector<Tensor> weights_;
};

// What an H100 can do, roughly: multiply-adds and bytes of its memory in a microsecond. One more
// launch costs what an image is to pay for it in a small batch.
constexpr double kFmasPerUs = 2e7, kBytesPerUs = 2.5e6, kLaunchUs = 0.25;

struct ConvArea {
  double height, width, channels, columns;
};
std::optional<ConvArea> ConvAreaOf(const KernelArgs& args, const ops::ConvNd& conv) {
  const SymShape &x = args.inputs[0].type.shape, &filter = args.inputs[1].type.shape;
  if (conv.spatial != 2 || !x.rank_known() || x.rank() != 4 || !filter.concrete())
    return std::nullopt;
  double out[2];
  for (const int i : {0, 1}) {
    const auto size =
        ops::WindowOutput(x.dim(conv.axis(i)), filter.dim(i).size(), conv.stride[i], conv.pads[i]);
    if (!size.ok() || !size->concrete()) return std::nullopt;
    out[i] = static_cast<double>(size->size());
  }
  return ConvArea{out[0], out[1], static_cast<double>(filter.dim(2).size()),
                  static_cast<double>(filter.dim(3).size())};
}

double WinogradCost(const ConvArea& area, int tile) {
  const double tiles = std::ceil(area.height / tile) * std::ceil(area.width / tile);
  const double points = tiles * (tile + 2) * (tile + 2);
  const double bytes = points * 2 * sizeof(float) * (area.channels + area.columns);
  return points * area.channels * area.columns / kFmasPerUs + bytes / kBytesPerUs + 4 * kLaunchUs;
}

}  // namespace

std::optional<double> PlainConvCost(const KernelArgs& args, const ops::ConvNd& conv) {
  const std::optional<ConvArea> area = ConvAreaOf(args, conv);
  if (!area.has_value()) return std::nullopt;
  const auto taps = static_cast<double>(args.inputs[1].type.shape.dim(0).size() *
                                        args.inputs[1].type.shape.dim(1).size());
  return area->height * area->width * taps * area->channels * area->columns / kFmasPerUs;
}

std::vector<Candidate> WinogradCandidates(const KernelArgs& args, const ops::ConvNd& conv) {
  std::vector<Candidate> candidates;
  const std::vector<kernels::WinogradPlan> plans = kernels::PlanWinogradConv(args, conv);
  const std::optional<ConvArea> area = ConvAreaOf(args, conv);
  if (!area.has_value() || plans.empty() || plans[0].form.h.taps != 3 ||
      plans[0].form.w.taps != 3 || plans[0].channels % 4 != 0) {
    return candidates;
  }
  for (const int tile : {4, 2}) {
    candidates.push_back({absl::StrCat("winograd", tile, "x", tile), WinogradCost(*area, tile),
                          true, [&args, &conv, tile]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
                            return std::make_unique<WinogradConvOnDevice>(args, conv, tile);
                          }});
  }
  return candidates;
}

}  // namespace floe::cuda
