// LayerNorm along the last axis: each row is read three times, from the nearest cache after the
// first.
#include "kernels/cpu/normalize/layer_norm_f32.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kernel.h"

namespace floe::kernels {
namespace {

class LayerNormKernel final : public Kernel {
 public:
  explicit LayerNormKernel(float epsilon) : epsilon_(epsilon), row_(PickLayerNormF32()) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const int64_t n = ctx.in(1).elements();
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const float *x = ctx.in(0).as<float>(), *scale = ctx.in(1).as<float>(),
                *offset = ctx.in(2).as<float>();
    float* y = ctx.out(0).as<float>();
    ParallelRange(ctx.pool, ctx.out(0).elements() / n, std::max<int64_t>(1, kElementGrain / n),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                      row_(x + i * n, scale, offset, epsilon_, y + i * n, static_cast<size_t>(n));
                  });
    return absl::OkStatus();
  }

 private:
  const float epsilon_;
  const LayerNormF32 row_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeLayerNorm(const KernelArgs& args) {
  return std::make_unique<LayerNormKernel>(args.node.attrs.Float("epsilon"));
}
FLOE_REGISTER_KERNEL(LayerNorm, kCpu, MakeLayerNorm, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
