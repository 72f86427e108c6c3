#include "kernels/cpu/conv/conv_cost.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "kernels/cpu/isa.h"
#include "model/ops/window.h"

namespace floe::kernels {
namespace {

struct Level {
  const char* isa;
  ConvRates rates;
};
// In the order of ConvRates.
constexpr Level kLevels[] = {
    {"avx512", {95'000, 57'000, 0.007, 4e6, 70'000, 30'000, 104'000, 0.11, 0.0015}},
    {"avx2", {44'000, 39'000, 0.008, 4e6, 70'000, 30'000, 45'000, 0.25, 0.0018}},
    {"sse4", {10'000, 9'500, 0.008, 4e6, 70'000, 30'000, 10'200, 0.35, 0.0038}},
    {"neon", {25'000, 22'000, 0.010, 4e6, 40'000, 20'000, 24'000, 0.3, 0.005}},
    {"scalar", {4'000, 3'700, 0.008, 4e6, 40'000, 20'000, 4'100, 0.3, 0.0033}},
};

}  // namespace

const ConvRates& RatesOfIsa() {
  const std::string isa = IsaName();
  for (const Level& level : kLevels) {
    if (isa == level.isa) return level.rates;
  }
  return std::end(kLevels)[-1].rates;
}

// Two thirds of the time of an image alone, which reads all weights, and a third of that of one
// among many. Reading and multiplying overlap in part.
double TransformedConvCost(double transforms, double product, double weight_bytes,
                           const ConvOptions& options) {
  const ConvRates& rates = RatesOfIsa();
  const bool cached = options.weights_stay_cached && weight_bytes < rates.cached_bytes;
  const double memory = weight_bytes / (cached ? rates.cached_bytes_per_us : rates.bytes_per_us);
  const double alone = std::max(product, memory) + 0.4 * std::min(product, memory);
  return transforms + (2 * alone + product) / 3;
}

namespace {

// Multiply-adds for one image.
std::optional<double> MacsOf(const KernelArgs& args, const ops::ConvNd& window) {
  const SymShape& input = args.inputs[0].type.shape;
  const SymShape& filter = args.inputs[1].type.shape;
  if (!input.rank_known() || input.rank() != 4 || !filter.concrete()) return std::nullopt;
  const Shape taps = filter.At(0);
  if (taps.rank() != 4) return std::nullopt;
  double macs = static_cast<double>(taps.elements());
  for (const int i : {0, 1}) {
    const auto out = ops::WindowOutput(input.dim(window.axis(i)), window.Span(i, taps.dim(i)),
                                       window.stride[i], window.pads[i]);
    if (!out.ok() || !out->concrete()) return std::nullopt;
    macs *= static_cast<double>(out->size());
  }
  return macs;
}

}  // namespace

std::optional<double> DirectConvCost(const KernelArgs& args, const ops::ConvNd& window) {
  std::optional<double> macs = MacsOf(args, window);
  if (!macs.has_value()) return std::nullopt;
  const Dim channels = args.inputs[0].type.shape.dim(window.channel_axis());
  const Shape filter = args.inputs[1].type.shape.At(0);
  if (channels.concrete() && channels.size() > filter.dim(2) && filter.elements() > 0) {
    // A group's columns that are no whole vector cost as much as one.
    const int64_t columns = filter.dim(3) / (channels.size() / filter.dim(2));
    *macs *= static_cast<double>(PickGemm().PaddedColumns(columns)) / static_cast<double>(columns);
  }
  return *macs / RatesOfIsa().macs_per_us;
}

std::optional<double> SmallGroupsCost(const KernelArgs& args, const ops::ConvNd& window) {
  constexpr double kOfGemm = 0.6;  // every few multiply-adds a vector's lanes change places
  const std::optional<double> macs = MacsOf(args, window);
  if (!macs.has_value()) return std::nullopt;
  return *macs / (kOfGemm * RatesOfIsa().macs_per_us);
}

GradientCosts CostsOfGradient(const KernelArgs& args, const GemmKernels& kernels) {
  constexpr int64_t kScatterMacs = 25;  // that adding a number of the columns to the image costs
  if (!args.inputs[1].has_constant()) return {};
  const Shape& filter = args.inputs[1].constant.shape();
  const int rank = filter.rank();
  int64_t taps = 1;
  for (int i = 0; i + 2 < rank; ++i) taps *= filter.dim(i);
  const int64_t to = filter.dim(rank - 2), from = filter.dim(rank - 1);
  // Columns of a product that are no whole vectors cost as much as whole ones.
  const double macs = RatesOfIsa().macs_per_us,
               phases = static_cast<double>(taps * from * kernels.PaddedColumns(to)),
               columns = static_cast<double>(from * kernels.PaddedColumns(taps * to) +
                                             kScatterMacs * taps * to);
  const SymShape& gradient = args.inputs[2].type.shape;
  double pixels = 1;
  bool known = gradient.rank_known() && gradient.rank() == rank;
  for (int i = 1; known && i + 1 < rank; ++i) {
    known = gradient.dim(i).concrete();
    pixels *= static_cast<double>(gradient.dim(i).size());
  }
  return {phases / macs, columns / macs, known ? std::optional(pixels) : std::nullopt};
}

}  // namespace floe::kernels
