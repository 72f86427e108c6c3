// Whether a convolution may use Fourier transforms, of how many points, and what that costs.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/conv/conv_cost.h"
#include "kernels/cpu/conv/conv_numbers.h"
#include "kernels/cpu/conv/fft_conv.h"
#include "kernels/cpu/gemm/gemm.h"

namespace floe::kernels {
namespace {

// Fewer never pay: a product of spectra costs about 1.5 multiply-adds of a tap times two.
constexpr int64_t kFewestTaps = 8;

// Largest absolute value; infinite if any is not finite.
double LargestWeight(const Tensor& weights, const FftKernels& kernels) {
  const uint32_t bits = kernels.largest(weights.as<float>(), weights.elements());
  constexpr uint32_t kInfinity = 0x7F800000;
  if (bits >= kInfinity) return INFINITY;
  float value = 0;
  static_assert(sizeof value == sizeof bits);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Above, the two passes of a transform leave the first cache.
constexpr int64_t kMostNearPoints = 200;

// Microseconds for one image.
double CostOf(const FftConvPlan& plan, int64_t lanes, const ConvOptions& options) {
  const ConvRates& rates = RatesOfIsa();
  const auto rows = static_cast<double>(plan.Tiles(plan.points));
  const auto planes = static_cast<double>(FftPlanes(plan.points));
  const double matrix = static_cast<double>(plan.width * CeilDiv(plan.columns, lanes) * lanes);
  // Short sums spend part of their time in the loads and stores around them.
  const double used = static_cast<double>(plan.width) / static_cast<double>(plan.width + 8);
  const double product = rows * planes * matrix / (rates.fft_macs_per_us * used);
  const double bytes = static_cast<double>(FftWeightPlanes(plan.points)) * matrix * sizeof(float);
  const int64_t blocks = CeilDiv(plan.width, 2 * lanes) + CeilDiv(plan.columns, 2 * lanes);
  const double transforms = rows * static_cast<double>(blocks * plan.points) * rates.point_us *
                            (plan.points > kMostNearPoints ? 1.5 : 1.0);
  return TransformedConvCost(transforms, product, bytes, options);
}

}  // namespace

std::optional<FftLine> FftLineOf(const KernelArgs& args, const ops::ConvNd& window) {
  const SymShape& input = args.inputs[0].type.shape;
  if (args.inputs[0].type.dtype != DType::kFloat32 || !args.inputs[1].has_constant() ||
      args.inputs[0].has_constant() || !input.rank_known() || input.rank() != 4)
    return std::nullopt;
  const Shape& filter = args.inputs[1].constant.shape();
  for (int i = 1; i < 4; ++i)
    if (!input.dim(i).concrete()) return std::nullopt;
  if (filter.elements() == 0 || filter.dim(2) != input.dim(3).size()) return std::nullopt;
  int64_t out[2] = {1, 1};
  for (const int i : {0, 1}) {
    const auto size = ops::WindowOutput(input.dim(window.axis(i)), window.Span(i, filter.dim(i)),
                                        window.stride[i], window.pads[i]);
    if (!size.ok() || !size->concrete() || size->size() < 1) return std::nullopt;
    out[i] = size->size();
  }
  const int axis = filter.dim(1) == 1 ? 0 : 1, other = 1 - axis;
  if (filter.dim(other) != 1 || input.dim(window.axis(other)).size() != 1 || out[other] != 1 ||
      window.pads[other].low != 0)
    return std::nullopt;
  const int64_t taps = filter.dim(axis);
  const int64_t stride = out[axis] > 1 ? window.stride[axis] : 1;
  if (taps < kFewestTaps || (window.stride[axis] > 1 && window.dilation[axis] > 1))
    return std::nullopt;
  // Interleaved sequences of one result each are no convolutions any more.
  if (out[axis] == 1 && window.dilation[axis] != 1) return std::nullopt;
  const double largest = LargestWeight(args.inputs[1].constant, PickFft());
  if (!(largest >= kFftSmallestWeight && largest <= kFftLargestWeight)) return std::nullopt;
  FftLine line;
  line.taps = CeilDiv(taps, stride);
  line.width = stride * filter.dim(2);
  line.columns = filter.dim(3);
  line.along_h = axis == 0;
  line.out = out[axis];
  line.dilation = window.dilation[axis];
  line.weights = filter.elements();
  return line;
}

int64_t FftLine::Tiles(int64_t points) const {
  return std::min(dilation, out) * CeilDiv(CeilDiv(out, dilation), points - taps + 1);
}

std::optional<FftConvPlan> PlanFftConv(const KernelArgs& args, const ops::ConvNd& window) {
  const std::optional<FftLine> line = FftLineOf(args, window);
  if (!line.has_value()) return std::nullopt;
  const FftKernels kernels = PickFft();
  const double most_floats = args.options.conv.fft_growth * static_cast<double>(line->weights);
  std::optional<FftConvPlan> best;
  for (const int points : FftPoints()) {
    FftConvPlan plan;
    static_cast<FftLine&>(plan) = *line;
    plan.points = points;
    if (plan.tile() < 1) continue;
    const int64_t columns = CeilDiv(plan.columns, kernels.lanes) * kernels.lanes;
    if (static_cast<double>(FftWeightPlanes(points) * plan.width * columns) > most_floats) continue;
    plan.cost_us = CostOf(plan, kernels.lanes, args.options.conv);
    if (!best.has_value() || plan.cost_us < best->cost_us) best = plan;
  }
  return best;
}

}  // namespace floe::kernels
