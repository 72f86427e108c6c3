#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/plain_sum.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// Plain loops over both kinds of convolution, float64 sums for floating types: the oracle.
template <typename T>
class PlainConv final : public Kernel {
 public:
  PlainConv(const ops::ConvNd& window, const Epilogue& epilogue, bool depthwise)
      : window_(window), epilogue_(epilogue), depthwise_(depthwise) {}
  std::string Route() const override { return "reference"; }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes s(window_, ctx);
    FLOE_RETURN_IF_ERROR(CheckConv(s, ctx, epilogue_, depthwise_));
    if (s.out_floats() == 0) return absl::OkStatus();  // of however many images
    const T* bias = BiasOf<T>(ctx, epilogue_);
    const T* residual = ResidualOf<T>(ctx, epilogue_);
    const int64_t cost = s.out_c * s.kernel_h * s.kernel_w * (depthwise_ ? 1 : s.filter_in);
    return WatchedRange(ctx.pool, s.images * s.out_pixels(),
                        std::max<int64_t>(1, kElementGrain / (cost + 1)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                            const int64_t image = i / s.out_pixels(),
                                          y = i % s.out_pixels() / s.out_w, x = i % s.out_w;
                            const T* from = ctx.in(0).as<T>() + image * s.image_floats();
                            for (int64_t c = 0; c < s.out_c; ++c) {
                              const int64_t element = i * s.out_c + c;
                              ctx.out(0).as<T>()[element] =
                                  PlainFinish(epilogue_, Sum(s, from, ctx.in(1).as<T>(), y, x, c),
                                              bias == nullptr ? nullptr : bias + c,
                                              residual == nullptr ? nullptr : residual + element);
                            }
                          }
                        });
  }

 private:
  PlainSum<T> Sum(const ConvSizes& s, const T* image, const T* filter, int64_t y, int64_t x,
                  int64_t c) const {
    // Input channels [first, first + count) and the filter's index for each.
    const int64_t groups = depthwise_ ? 1 : s.in_c / s.filter_in;
    const int64_t count = depthwise_ ? 1 : s.filter_in;
    const int64_t first = depthwise_ ? c / s.filter_out : c / (s.out_c / groups) * s.filter_in;
    PlainSum<T> sum = 0;
    for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
      const int64_t iy = y * s.stride_h + ky * s.dilation_h - s.pad_top;
      if (iy < 0 || iy >= s.in_h) continue;
      for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
        const int64_t ix = x * s.stride_w + kx * s.dilation_w - s.pad_left;
        if (ix < 0 || ix >= s.in_w) continue;
        const T* tap = filter + (ky * s.kernel_w + kx) * s.filter_in * s.filter_out;
        for (int64_t i = 0; i < count; ++i) {
          const T weight = depthwise_ ? tap[c] : tap[i * s.filter_out + c];
          sum += PlainWide(image[(iy * s.in_w + ix) * s.in_c + first + i]) * PlainWide(weight);
        }
        // TensorFlow's depthwise convolution keeps the sums of 16-bit floats in their own type.
        if (kIsHalf<T> && depthwise_) sum = PlainWide(PlainNarrow<T>(sum));
      }
    }
    return sum;
  }

  const ops::ConvNd window_;
  const Epilogue epilogue_;
  const bool depthwise_;
};

}  // namespace

std::unique_ptr<Kernel> MakePlainConv(const KernelArgs& args, const ops::ConvNd& window,
                                      const Epilogue& epilogue, bool depthwise) {
  std::unique_ptr<Kernel> kernel;
  ForDType(args.inputs[0].type.dtype, TypeList<float, double, Half, BFloat16, int32_t>{},
           [&](auto t) {
             kernel = std::make_unique<PlainConv<decltype(t)>>(window, epilogue, depthwise);
           });
  return kernel;
}

}  // namespace floe::kernels
