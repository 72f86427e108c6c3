#include <cstring>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/gemm_operands.h"
#include "kernels/cpu/gemm/openblas.h"

namespace floe::kernels {
namespace {

// The textbook way: the pixels under the filter are written out as a matrix, image by image, and
// multiplied.
class BlasConv final : public Kernel {
 public:
  BlasConv(const ops::ConvNd& window, const Epilogue& epilogue, const Blas& blas)
      : window_(window), epilogue_(epilogue), gemm_(PickGemm()), blas_(blas) {}

  int64_t ScratchBytes(absl::Span<const Shape> inputs,
                       absl::Span<const Shape> outputs) const override {
    const ConvSizes s(window_, inputs[0], inputs[1], outputs[0]);
    return ScratchPieces::Bytes({PaddedScratch(s), MatrixFloats(s)});
  }
  std::string Route() const override { return "im2col, openblas"; }

  absl::Status Run(const KernelContext& ctx) const override {
    const ConvSizes s(window_, ctx);
    FLOE_RETURN_IF_ERROR(CheckConv(s, ctx, epilogue_, false));
    if (s.out_floats() == 0) return absl::OkStatus();
    ScratchPieces pieces(ctx.scratch);
    float* padded = pieces.Floats(PaddedScratch(s));
    float* matrix = pieces.Floats(MatrixFloats(s));
    const float* bias = BiasOf<float>(ctx, epilogue_);
    const float* in = ctx.in(0).as<float>();
    float* out = ctx.out(0).as<float>();
    const float* residual = ResidualOf<float>(ctx, epilogue_);
    for (int64_t i = 0; i < s.images; ++i, in += s.image_floats(), out += s.out_floats()) {
      const float* image = PaddedImage(s, in, padded, *ctx.pool);
      MultiplyImage(s, image, ctx.in(1).as<float>(), matrix, out);
      gemm_.finish(epilogue_, bias, residual, out, s.out_pixels(), s.out_c, s.out_c);
      if (residual != nullptr) residual += s.out_floats();
    }
    return absl::OkStatus();
  }

 private:
  static int64_t MatrixFloats(const ConvSizes& s) {
    return ScratchFloats({s.out_pixels(), s.kernel_h, s.kernel_w, s.filter_in});
  }

  // Row p of `matrix`: the taps of one group under output pixel p.
  static void WriteOut(const ConvSizes& s, const float* group, float* matrix) {
    for (int64_t y = 0; y < s.out_h; ++y) {
      for (int64_t x = 0; x < s.out_w; ++x) {
        for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < s.kernel_w; ++kx, matrix += s.filter_in) {
            const int64_t iy = y * s.stride_h + ky * s.dilation_h,
                          ix = x * s.stride_w + kx * s.dilation_w;
            std::memcpy(matrix, group + (iy * s.padded_w + ix) * s.in_c,
                        s.filter_in * sizeof(float));
          }
        }
      }
    }
  }

  void MultiplyImage(const ConvSizes& s, const float* image, const float* filter, float* matrix,
                     float* out) const {
    const int64_t groups = s.in_c / s.filter_in, n = s.out_c / groups;
    const int64_t k = s.kernel_h * s.kernel_w * s.filter_in;
    for (int64_t g = 0; g < groups; ++g) {
      WriteOut(s, image + g * s.filter_in, matrix);
      blas_.Multiply(s.out_pixels(), n, k, {matrix, k}, {filter + g * n, s.out_c}, out + g * n,
                     s.out_c);
    }
  }

  const ops::ConvNd window_;
  const Epilogue epilogue_;
  const GemmKernels gemm_;  // for the epilogue
  const Blas& blas_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeBlasConv(const KernelArgs&, const ops::ConvNd& window,
                                                     const Epilogue& epilogue) {
  FLOE_ASSIGN_OR_RETURN(const Blas* blas, OpenBlas());
  return std::make_unique<BlasConv>(window, epilogue, *blas);
}

}  // namespace floe::kernels
