// QuantizedInstanceNorm: each channel of each image moved and scaled to mean 0 and variance 1.
#include <cmath>
#include <limits>

#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/quantized/quantized.h"

namespace floe::kernels {
namespace {

struct QuantizedNormOptions {
  bool range_given;
  QuantizedRange given;
  float epsilon, least_width;
};

// Calls each(element, normed value) for every element, channel by channel.
template <class F>
void ForEachNormed(const KernelContext& ctx, float step, float epsilon, const F& each) {
  const Shape& shape = ctx.in(0).shape;
  const auto* x = ctx.in(0).as<uint8_t>();
  const int64_t area = shape.dim(1) * shape.dim(2), channels = shape.dim(3);
  for (int64_t line = 0; line < shape.dim(0) * channels; ++line) {
    const int64_t first = line / channels * area * channels + line % channels;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < area; ++i) sum += x[first + i * channels];
    const auto mean = static_cast<float>(sum / static_cast<double>(area));
    const auto offset = [&](int64_t i) {
      return step * (static_cast<float>(x[first + i * channels]) - mean);
    };
    for (int64_t i = 0; i < area; ++i)
      squares += static_cast<double>(offset(i)) * static_cast<double>(offset(i));
    const auto variance = static_cast<float>(squares / static_cast<double>(area));
    const float scale = 1.0f / std::sqrt(variance + epsilon);
    for (int64_t i = 0; i < area; ++i) each(first + i * channels, offset(i) * scale);
  }
}

absl::Status InstanceNorm(const KernelContext& ctx, const QuantizedNormOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange range, RangeOf(ctx, 1));
  if (!(range.low < range.high))
    return absl::InvalidArgumentError(absl::StrCat("a range from ", range.low, " to ", range.high));
  const float step = (range.high - range.low) / 255.0f;
  QuantizedRange to = options.given;
  if (!options.range_given) {
    to = {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()};
    ForEachNormed(ctx, step, options.epsilon, [&](int64_t, float value) {
      to = {std::min(to.low, value), std::max(to.high, value)};
    });
  }
  if (to.high - to.low < options.least_width) to.high = to.low + options.least_width;
  GiveRange(ctx, 1, to);
  if (ctx.out(0).data == nullptr) return absl::OkStatus();
  const TensorQuantizer<uint8_t> place(to);
  ForEachNormed(ctx, step, options.epsilon,
                [&](int64_t at, float value) { ctx.out(0).as<uint8_t>()[at] = place(value); });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeQuantizedNorm(const KernelArgs& args) {
  const Attrs& a = args.node.attrs;
  const QuantizedNormOptions options{a.Bool("output_range_given"),
                                     {a.Float("given_y_min"), a.Float("given_y_max")},
                                     a.Float("variance_epsilon", 1e-5f),
                                     a.Float("min_separation", 1e-3f)};
  if (options.range_given && !(options.given.low < options.given.high))
    return absl::InvalidArgumentError(absl::StrCat(
        "given_y_min ", options.given.low, " is not below given_y_max ", options.given.high));
  return FromFunction([options](const KernelContext& ctx) { return InstanceNorm(ctx, options); });
}
FLOE_REGISTER_KERNEL(QuantizedInstanceNorm, kCpu, MakeQuantizedNorm, DType::kQUInt8);

}  // namespace
}  // namespace floe::kernels
