#include "kernels/cuda/emit/fft_conv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cpu/conv/conv_numbers.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cuda/device_kernel.h"
#include "kernels/cuda/emit/product.h"
#include "kernels/cuda/fft_args.h"

namespace floe::cuda {
namespace {

using kernels::BitsOf;
using kernels::CeilDiv;
using kernels::ConvSizes;
using kernels::ScratchPieces;

// Of tiles whose spectra are in scratch, whatever the batch is: others are computed after them. So
// many give a product of spectra enough rows to fill a device.
constexpr int64_t kFftTilesTogether = 256, kFftSpectraFloats = int64_t{24} << 20;

// How many points there are, as the factors of the two passes.
constexpr int kFftFactors[][2] = {{4, 4},   {6, 4},   {8, 4},   {8, 6},   {8, 8},   {10, 8},
                                  {12, 8},  {12, 10}, {16, 8},  {12, 12}, {16, 10}, {12, 15},
                                  {16, 12}, {14, 15}, {16, 15}, {16, 16}};

int64_t LineFloats(int64_t width) { return CeilDiv(width, 4) * 4; }

// Multiply-adds in a microsecond, and those that fit the time in which a float is moved to or from
// the memory of a device. About an H100's, and the same on every device: the choice gives bits.
constexpr double kMacsPerUs = 25e6, kMacsPerFloat = 30;

double CostOf(const FftDevicePlan& plan) {
  const auto planes = static_cast<double>(FftPlanesOf(plan.points()));
  const auto width = static_cast<double>(plan.width), columns = static_cast<double>(plan.columns);
  // The sums of both passes, of which a thread reads what it adds from shared memory.
  const double passes = 4.0 * static_cast<double>(plan.points() * (plan.first + plan.second));
  const double of_tile = planes * (width * columns + 2 * kMacsPerFloat * (width + columns)) +
                         passes * (width + columns);
  return static_cast<double>(plan.Tiles(plan.points())) * of_tile / kMacsPerUs;
}

double DirectCostOf(const kernels::FftLine& line) {
  return static_cast<double>(line.out) * static_cast<double>(line.weights) / kMacsPerUs;
}

// The conjugate spectrum of the filter by channel and column, as the planes of the right factors,
// scaled for the transform back.
Tensor TransformedWeights(const FftDevicePlan& plan, const float* filter) {
  const int64_t points = plan.points(), line = FactorColumns(plan.columns);
  const int64_t direct_k = plan.weights / plan.columns;
  Tensor planes = AllocateFactors(FftPlanesOf(points), plan.width, plan.columns);
  const auto plane = [&](int64_t p) {
    return static_cast<float*>(planes.mutable_data()) + p * plan.width * line;
  };
  const double scale = 1.0 / static_cast<double>(points);
  std::vector<double> re(static_cast<size_t>(plan.columns)), im(re.size());
  for (int64_t k = 0; k <= points / 2; ++k) {
    for (int64_t c = 0; c < plan.width; ++c) {
      std::fill(re.begin(), re.end(), 0.0);
      std::fill(im.begin(), im.end(), 0.0);
      for (int64_t tap = 0; tap < plan.taps && tap * plan.width + c < direct_k; ++tap) {
        const double angle = 2 * M_PI * static_cast<double>(tap * k % points) * scale;
        const double cosine = std::cos(angle) * scale, sine = std::sin(angle) * scale;
        const float* const from = filter + (tap * plan.width + c) * plan.columns;
        for (size_t column = 0; column < re.size(); ++column) {
          re[column] += from[column] * cosine;
          im[column] += from[column] * sine;
        }
      }
      const int64_t p = k == 0 ? 0 : 3 * (k - 1) + 1, at = c * line;
      for (size_t i = 0; i < re.size(); ++i) {
        const int64_t to = at + static_cast<int64_t>(i);
        if (k == 0 || k == points / 2) {
          plane(p)[to] = static_cast<float>(re[i]);
          continue;
        }
        plane(p)[to] = static_cast<float>(im[i] - re[i]);
        plane(p + 1)[to] = static_cast<float>(re[i] + im[i]);
        plane(p + 2)[to] = static_cast<float>(re[i]);
      }
    }
  }
  return planes;
}

Tensor Cosines(int64_t points) {
  Tensor pairs = Tensor::Allocate(DType::kFloat32, Shape({points, 2}));
  auto* const to = static_cast<float*>(pairs.mutable_data());
  for (int64_t i = 0; i < points; ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / static_cast<double>(points);
    to[2 * i] = static_cast<float>(std::cos(angle));
    to[2 * i + 1] = static_cast<float>(std::sin(angle));
  }
  return pairs;
}

class FftOnDevice final : public DeviceKernel {
 public:
  FftOnDevice(const KernelArgs& args, const ops::ConvNd& conv, const FftDevicePlan& plan)
      : conv_(conv), epilogue_(EpilogueOf(args.node.attrs)), plan_(plan) {
    const Tensor& filter = args.inputs[1].constant;
    weights_ = {TransformedWeights(plan, filter.as<float>()), Cosines(plan.points()), filter};
  }

  absl::Span<const Tensor> Weights() const override { return weights_; }
  bool NeedsInput(int i) const override { return i != 1; }
  std::string Route() const override { return absl::StrCat("FFT of ", plan_.points(), " points"); }

  // The same for every batch.
  int64_t ScratchBytes(absl::Span<const Shape>, absl::Span<const Shape>) const override {
    const int64_t together = plan_.together;
    return ScratchPieces::Bytes({together, together * plan_.points(),
                                 Planes() * together * LineFloats(plan_.width),
                                 Planes() * together * LineFloats(plan_.columns)});
  }

  void Emit(const DeviceAddresses& addresses, std::vector<Launch>* launches) const override {
    if (addresses.out(0).elements() == 0) return;
    const ConvSizes sizes(conv_, addresses.in(0).shape, addresses.in(1).shape,
                          addresses.out(0).shape);
    FftArgs args = ArgsOf(addresses, sizes);
    const int64_t of_image = int64_t{args.sequences} * args.tiles_of_sequence,
                  tiles = sizes.images * of_image;
    for (int64_t first = 0; first < tiles; first += args.together) {
      args.first_tile = first;
      const auto count = static_cast<uint32_t>(std::min<int64_t>(args.together, tiles - first));
      launches->push_back(Launch::Of(KernelId::fft_judge, {count, 1, 1}, args));
      launches->push_back(
          Launch::Of(KernelId::fft_forward, {count, Blocks(args.width, kFftChannels), 1}, args));
      EmitProduct(addresses, args, count, launches);
      launches->push_back(
          Launch::Of(KernelId::fft_inverse, {count, Blocks(args.columns, kFftChannels), 1}, args));
    }
  }

 private:
  int64_t Planes() const { return FftPlanesOf(plan_.points()); }

  FftArgs ArgsOf(const DeviceAddresses& addresses, const ConvSizes& sizes) const {
    FftArgs args = {};
    const int64_t in = plan_.along_h ? sizes.in_h : sizes.in_w;
    args.together = static_cast<int32_t>(plan_.together);
    args.points = static_cast<int32_t>(plan_.points());
    ScratchPieces pieces(addresses.scratch);
    args.kinds = reinterpret_cast<uint32_t*>(pieces.Floats(args.together));
    args.most = reinterpret_cast<uint32_t*>(pieces.Floats(int64_t{args.together} * args.points));
    args.data = pieces.Floats(Planes() * args.together * LineFloats(plan_.width));
    args.products = pieces.Floats(Planes() * args.together * LineFloats(plan_.columns));
    args.x = addresses.in(0).as<float>();
    args.image = in * sizes.in_c;
    args.cosines = addresses.weight<float>(1);
    args.direct = addresses.weight<float>(2);
    args.direct_line = static_cast<int32_t>(plan_.columns);
    args.direct_k = static_cast<int32_t>(plan_.weights / plan_.columns);
    args.y = addresses.out(0).as<float>();
    args.pad = plan_.along_h ? sizes.pad_top : sizes.pad_left;
    args.stride = plan_.along_h ? sizes.stride_h : sizes.stride_w;
    args.channels = static_cast<int32_t>(sizes.in_c);
    args.out = static_cast<int32_t>(plan_.along_h ? sizes.out_h : sizes.out_w);
    args.dilation = static_cast<int32_t>(plan_.dilation);
    args.sequences = std::min(args.dilation, args.out);
    args.first = plan_.first;
    args.second = plan_.second;
    args.taps = static_cast<int32_t>(plan_.taps);
    args.tile = static_cast<int32_t>(plan_.tile());
    args.tiles_of_sequence =
        static_cast<int32_t>(CeilDiv(CeilDiv(args.out, args.dilation), args.tile));
    args.width = static_cast<int32_t>(plan_.width);
    args.columns = static_cast<int32_t>(plan_.columns);
    args.data_line = static_cast<int32_t>(LineFloats(plan_.width));
    args.product_line = static_cast<int32_t>(LineFloats(plan_.columns));
    args.high = BitsOf(kernels::kFftLargest);
    args.low = BitsOf(kernels::kFftSmallest);
    args.range = static_cast<float>(kernels::kFftRange);
    args.epilogue = EpilogueArgsOf(addresses, epilogue_);
    return args;
  }

  // All planes, each a product of its own.
  void EmitProduct(const DeviceAddresses& addresses, const FftArgs& fft, uint32_t tiles,
                   std::vector<Launch>* launches) const {
    GemmArgs args = {};
    args.a = fft.data;
    args.a_row = fft.data_line;
    args.a_column = 1;
    args.b = PackedFactor(addresses.weight<float>(0), plan_.columns);
    args.c = fft.products;
    args.c_row = fft.product_line;
    args.a_vectors = fft.width % 4 == 0 && fft.data_line % 4 == 0 && Aligned(args.a);
    args.c_vectors = Aligned(args.c);
    args.m = static_cast<int32_t>(tiles);
    args.n = fft.columns;
    args.k = fft.width;
    std::fill_n(args.batch, kMaxBatchDims, 1);
    args.batch[kMaxBatchDims - 1] = static_cast<int32_t>(Planes());
    args.a_batch[kMaxBatchDims - 1] = int64_t{fft.together} * fft.data_line;
    args.b_batch[kMaxBatchDims - 1] = plan_.width * FactorColumns(plan_.columns);
    args.c_batch = int64_t{fft.together} * fft.product_line;
    AppendGemm(args, Planes(), launches);
  }

  const ops::ConvNd conv_;
  const Epilogue epilogue_;
  const FftDevicePlan plan_;
  std::vector<Tensor> weights_;  // spectrum, cosines and sines, the filter
};

}  // namespace

std::vector<FftDevicePlan> FftPlansOnDevice(const kernels::FftLine& line) {
  std::vector<FftDevicePlan> plans;
  for (const auto& [first, second] : kFftFactors) {
    FftDevicePlan plan;
    static_cast<kernels::FftLine&>(plan) = line;
    plan.first = first;
    plan.second = second;
    if (plan.tile() < 1) continue;
    const int64_t of_tile =
        FftPlanesOf(plan.points()) * (LineFloats(plan.width) + LineFloats(plan.columns));
    plan.together = std::clamp<int64_t>(kFftSpectraFloats / of_tile, 1, kFftTilesTogether);
    plan.cost_us = CostOf(plan);
    plan.direct_cost_us = DirectCostOf(line);
    plans.push_back(plan);
  }
  return plans;
}

std::optional<FftDevicePlan> PlanFftOnDevice(const KernelArgs& args, const ops::ConvNd& conv) {
  if (!args.options.conv.fft) return std::nullopt;
  const std::optional<kernels::FftLine> line = kernels::FftLineOf(args, conv);
  // Places in a tile are counted in 32 bits.
  if (!line.has_value() || line->width > (1 << 20) || line->columns > (1 << 20) ||
      line->out > (1 << 30) || line->dilation > (1 << 20))
    return std::nullopt;
  std::optional<FftDevicePlan> best;
  for (const FftDevicePlan& plan : FftPlansOnDevice(*line)) {
    const double floats = static_cast<double>(FftPlanesOf(plan.points()) * plan.width) *
                          static_cast<double>(FactorColumns(plan.columns));
    if (floats > args.options.conv.fft_growth * static_cast<double>(line->weights)) continue;
    if (!best.has_value() || plan.cost_us < best->cost_us) best = plan;
  }
  return best;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFftOnDevice(const KernelArgs& args,
                                                        const ops::ConvNd& conv,
                                                        const FftDevicePlan& plan) {
  const int64_t bytes = FftPlanesOf(plan.points()) * plan.width * FactorColumns(plan.columns) *
                        static_cast<int64_t>(sizeof(float));
  FLOE_RETURN_IF_ERROR(Annotate(CheckMemory(bytes),
                                "transformed weights of a convolution; the model's key `fft: off` "
                                "or `--route NODE=gemm` needs less memory"));
  return std::make_unique<FftOnDevice>(args, conv, plan);
}

}  // namespace floe::cuda
