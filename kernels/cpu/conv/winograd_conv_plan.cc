// Whether a convolution may use Winograd's filtering, in which forms, and what that costs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/conv/conv_cost.h"
#include "kernels/cpu/conv/conv_numbers.h"
#include "kernels/cpu/conv/winograd_conv.h"
#include "kernels/cpu/gemm/gemm.h"

namespace floe::kernels {
namespace {

// Height and width of the result; unset where the route is not open.
struct Area {
  int64_t height, width;
};

std::optional<Area> AreaOf(const KernelArgs& args, const ops::ConvNd& window) {
  const SymShape& input = args.inputs[0].type.shape;
  if (args.inputs[0].type.dtype != DType::kFloat32 || !args.inputs[1].has_constant() ||
      args.inputs[0].has_constant() || !input.rank_known() || input.rank() != 4)
    return std::nullopt;
  const Shape& filter = args.inputs[1].constant.shape();
  if (filter.elements() == 0 || !input.dim(3).concrete() || input.dim(3).size() != filter.dim(2))
    return std::nullopt;
  int64_t out[2] = {0, 0};
  for (const int i : {0, 1}) {
    if (window.stride[i] != 1 || window.dilation[i] != 1) return std::nullopt;
    const auto size =
        ops::WindowOutput(input.dim(window.axis(i)), filter.dim(i), 1, window.pads[i]);
    if (!size.ok() || !size->concrete() || size->size() < 1) return std::nullopt;
    out[i] = size->size();
  }
  return Area{out[0], out[1]};
}

bool WeightsInRange(const Tensor& weights) {
  uint32_t bits = 0;
  const auto* values = weights.as<float>();
  const LargestOfPixels largest_of = PickLargestOfPixels();
  largest_of(values, 1, weights.elements(), 0, &bits);
  float largest = 0;
  static_assert(sizeof largest == sizeof bits);
  std::memcpy(&largest, &bits, sizeof largest);
  return largest >= kWinogradSmallestWeight && largest <= kWinogradLargestWeight;
}

// Microseconds for one image.
double CostOf(const WinogradPlan& plan, const Area& area, int64_t lanes,
              const ConvOptions& options) {
  const ConvRates& rates = RatesOfIsa();
  const auto tiles = static_cast<double>(CeilDiv(area.height, plan.form.h.tile) *
                                         CeilDiv(area.width, plan.form.w.tile));
  const auto points = static_cast<double>(plan.form.points());
  const auto matrix = static_cast<double>(plan.channels * CeilDiv(plan.columns, lanes) * lanes);
  const double used = static_cast<double>(plan.channels) / static_cast<double>(plan.channels + 2);
  const double product = tiles * points * matrix / (rates.winograd_macs_per_us * used);
  const int64_t blocks = CeilDiv(plan.channels, lanes) + CeilDiv(plan.columns, lanes);
  const double transforms = tiles * (rates.winograd_tile_us + static_cast<double>(blocks) * points *
                                                                  rates.winograd_point_us);
  return TransformedConvCost(transforms, product, points * matrix * sizeof(float), options);
}

}  // namespace

std::string WinogradPlan::Name() const {
  return absl::StrCat("winograd", form.h.tile, "x", form.w.tile);
}

int64_t WinogradPlan::WeightBytes() const {
  return form.points() * PickGemm().PackedFloats(channels, columns) *
         static_cast<int64_t>(sizeof(float));
}

std::vector<WinogradPlan> PlanWinogradConv(const KernelArgs& args, const ops::ConvNd& window) {
  std::vector<WinogradPlan> plans;
  const std::optional<Area> area = AreaOf(args, window);
  if (!area.has_value()) return plans;
  const Tensor& weights = args.inputs[1].constant;
  for (const WinogradForm& form : WinogradForms()) {
    if (form.h.taps != weights.shape().dim(0) || form.w.taps != weights.shape().dim(1)) continue;
    if (plans.empty() && !WeightsInRange(weights)) return plans;
    WinogradPlan plan;
    plan.form = form;
    plan.channels = weights.shape().dim(2);
    plan.columns = weights.shape().dim(3);
    plan.cost_us = CostOf(plan, *area, PickGemm().lanes, args.options.conv);
    if (plan.WeightBytes() <= kWinogradWeightBytes) plans.push_back(plan);
  }
  return plans;
}

}  // namespace floe::kernels
