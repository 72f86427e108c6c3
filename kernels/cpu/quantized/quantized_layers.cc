// Layers of quantised values: convolution, matrix product, pooling, activations. Products are those
// of the differences to what stands for zero, summed in 32 bits.
#include <vector>

#include "base/budget.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/quantized/quantized.h"
#include "kernels/cpu/run_watch.h"
#include "model/ops/conv_nd.h"

namespace floe::kernels {
namespace {

using Words = BudgetVector<uint32_t>;  // of differences, modulo 2^32

uint32_t Difference(uint8_t value, uint32_t zero) { return value - zero; }

// sums[n] += factor * row[n].
inline void AddProduct(uint32_t factor, const uint32_t* row, int64_t n, uint32_t* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += factor * row[i];
}

struct ConvShape {
  int64_t in_h, in_w, in_c, kernel_h, kernel_w, out_h, out_w, out_c, pad_h, pad_w;
};

// A line of the output. Places past the edge count as zero.
void ConvLine(const ops::ConvNd& window, const ConvShape& s, const uint8_t* image, uint32_t zero,
              const Words& filter, int64_t y, uint32_t* line) {
  std::fill_n(line, s.out_w * s.out_c, 0u);
  for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
    const int64_t in_y = y * window.stride[0] + ky * window.dilation[0] - s.pad_h;
    if (in_y < 0 || in_y >= s.in_h) continue;
    for (int64_t x = 0; x < s.out_w; ++x) {
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t in_x = x * window.stride[1] + kx * window.dilation[1] - s.pad_w;
        if (in_x < 0 || in_x >= s.in_w) continue;
        const uint8_t* pixel = image + (in_y * s.in_w + in_x) * s.in_c;
        const uint32_t* tap = filter.data() + (ky * s.kernel_w + kx) * s.in_c * s.out_c;
        for (int64_t c = 0; c < s.in_c; ++c)
          AddProduct(Difference(pixel[c], zero), tap + c * s.out_c, s.out_c, line + x * s.out_c);
      }
    }
  }
}

absl::Status Conv(const KernelContext& ctx, const ops::ConvNd& window) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_input, RangeOf(ctx, 2));
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_filter, RangeOf(ctx, 4));
  GiveRange(ctx, 1, ProductRange<uint8_t, uint8_t>(of_input, of_filter));
  const Shape &in = ctx.in(0).shape, &taps = ctx.in(1).shape;
  if (in.dim(3) != taps.dim(2))
    return absl::InvalidArgumentError(
        absl::StrCat("filter ", taps.ToString(), " for input ", in.ToString()));
  const TensorView& out = ctx.out(0);
  if (out.data == nullptr || out.elements() == 0) return absl::OkStatus();
  const int64_t out_h = out.shape.dim(1), out_w = out.shape.dim(2);
  const auto pad = [&](int i, int64_t size) {
    return ops::PadLow(in.dim(i + 1), size, window.Span(i, taps.dim(i)), window.stride[i],
                       window.pads[i]);
  };
  const ConvShape s{in.dim(1), in.dim(2), in.dim(3),   taps.dim(0),   taps.dim(1),
                    out_h,     out_w,     taps.dim(3), pad(0, out_h), pad(1, out_w)};
  const uint32_t zero = ZeroOf<uint8_t>(of_input), filter_zero = ZeroOf<uint8_t>(of_filter);
  Words filter(ctx.in(1).elements());
  for (size_t i = 0; i < filter.size(); ++i)
    filter[i] = Difference(ctx.in(1).as<uint8_t>()[i], filter_zero);
  return WatchedRange(ctx.pool, in.dim(0) * out_h, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      ConvLine(window, s, ctx.in(0).as<uint8_t>() + line / out_h * s.in_h * s.in_w * s.in_c, zero,
               filter, line % out_h, out.as<uint32_t>() + line * out_w * s.out_c);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConv(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::ConvNd window, ops::ConvNdOf(args.node.attrs, 2));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  return FromFunction([window](const KernelContext& ctx) { return Conv(ctx, window); });
}
FLOE_REGISTER_KERNEL(QuantizedConv2D, kCpu, MakeConv, DType::kQUInt8);

struct Transposes {
  bool a, b;
};

absl::Status MatMul(const KernelContext& ctx, Transposes transposed) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_a, RangeOf(ctx, 2));
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange of_b, RangeOf(ctx, 4));
  GiveRange(ctx, 1, ProductRange<uint8_t, uint8_t>(of_a, of_b));
  const Shape &a = ctx.in(0).shape, &b = ctx.in(1).shape;
  const int64_t rows = a.dim(transposed.a ? 1 : 0), inner = a.dim(transposed.a ? 0 : 1),
                columns = b.dim(transposed.b ? 0 : 1);
  if (b.dim(transposed.b ? 1 : 0) != inner)
    return absl::InvalidArgumentError(
        absl::StrCat("matrices ", a.ToString(), " and ", b.ToString(), " cannot be multiplied"));
  if (ctx.out(0).data == nullptr) return absl::OkStatus();
  const uint32_t zero_a = ZeroOf<uint8_t>(of_a), zero_b = ZeroOf<uint8_t>(of_b);
  Words right(inner * columns);
  for (int64_t i = 0; i < inner * columns; ++i) {
    const int64_t at = transposed.b ? i % columns * inner + i / columns : i;
    right[i] = Difference(ctx.in(1).as<uint8_t>()[at], zero_b);
  }
  return WatchedRange(ctx.pool, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      uint32_t* const sums = ctx.out(0).as<uint32_t>() + r * columns;
      std::fill_n(sums, columns, 0u);
      for (int64_t k = 0; k < inner; ++k) {
        const uint8_t left = ctx.in(0).as<uint8_t>()[transposed.a ? k * rows + r : r * inner + k];
        AddProduct(Difference(left, zero_a), right.data() + k * columns, columns, sums);
      }
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeMatMul(const KernelArgs& args) {
  const Transposes transposed{args.node.attrs.Bool("transpose_a"),
                              args.node.attrs.Bool("transpose_b")};
  return FromFunction([transposed](const KernelContext& ctx) { return MatMul(ctx, transposed); });
}
FLOE_REGISTER_KERNEL(QuantizedMatMul, kCpu, MakeMatMul, DType::kQUInt8);

// Over the places of the window that are in the image; the mean is cut to a whole number.
template <bool kMax>
absl::Status Pool(const KernelContext& ctx, const ops::Window& window) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange range, RangeOf(ctx, 1));
  GiveRange(ctx, 1, range);
  const TensorView& out = ctx.out(0);
  if (out.data == nullptr || out.elements() == 0) return absl::OkStatus();
  const Shape& in = ctx.in(0).shape;
  const int64_t channels = in.dim(3);
  int64_t pad[2];
  for (int i = 0; i < 2; ++i)
    pad[i] = ops::PadLow(in.dim(i + 1), out.shape.dim(i + 1), window.kernel[i], window.stride[i],
                         window.pads[i]);
  const int64_t out_h = out.shape.dim(1), out_w = out.shape.dim(2);
  const auto pool_one = [&](int64_t i) {
    const int64_t c = i % channels, pixel = i / channels, image = pixel / (out_h * out_w);
    const int64_t top = pixel / out_w % out_h * window.stride[0] - pad[0],
                  left = pixel % out_w * window.stride[1] - pad[1];
    int64_t sum = 0, count = 0, best = 0;
    for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + window.kernel[0], in.dim(1));
         ++y) {
      for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + window.kernel[1], in.dim(2));
           ++x, ++count) {
        const uint8_t value =
            ctx.in(0).as<uint8_t>()[((image * in.dim(1) + y) * in.dim(2) + x) * channels + c];
        sum += value;
        best = std::max<int64_t>(best, value);
      }
    }
    out.as<uint8_t>()[i] = static_cast<uint8_t>(kMax ? best : count == 0 ? 0 : sum / count);
  };
  return WatchedRange(ctx.pool, out.elements(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pool_one(i);
  });
}
template <bool kMax>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(const KernelArgs& args) {
  FLOE_ASSIGN_OR_RETURN(const ops::Window window, ops::WindowOf(args.node.attrs, 2));
  FLOE_RETURN_IF_ERROR(ops::CheckChannelsLast(window.channels_first));
  return FromFunction([window](const KernelContext& ctx) { return Pool<kMax>(ctx, window); });
}
FLOE_REGISTER_KERNEL(QuantizedMaxPool, kCpu, MakePool<true>, DType::kQUInt8);
FLOE_REGISTER_KERNEL(QuantizedAvgPool, kCpu, MakePool<false>, DType::kQUInt8);

template <bool kSix>
absl::Status Relu(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const QuantizedRange range, RangeOf(ctx, 1));
  GiveRange(ctx, 1, range);
  if (ctx.out(0).data == nullptr) return absl::OkStatus();
  const auto least = Quantized<uint8_t>(0.0f, range);
  const auto most = kSix ? Quantized<uint8_t>(6.0f, range) : uint8_t{255};
  for (int64_t i = 0; i < ctx.in(0).elements(); ++i)
    ctx.out(0).as<uint8_t>()[i] = std::min(std::max(ctx.in(0).as<uint8_t>()[i], least), most);
  return absl::OkStatus();
}
FLOE_REGISTER_KERNEL(QuantizedRelu, kCpu, MakeFunction<Relu<false>>, DType::kQUInt8);
FLOE_REGISTER_KERNEL(QuantizedRelu6, kCpu, MakeFunction<Relu<true>>, DType::kQUInt8);

}  // namespace
}  // namespace floe::kernels
