// GatherV2: slices of the params at the places that the indices name.
#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"

namespace floe::kernels {
namespace {

// The params as [batch, outer, along, inner], the indices as [batch, count].
struct GatherExtents {
  int64_t batch = 1, outer = 1, along = 1, inner = 1, count = 1;
};

template <class Index>
absl::Status GatherSlices(const KernelContext& ctx, const GatherExtents& e) {
  const DType dtype = ctx.in(0).dtype;
  const auto size = static_cast<int64_t>(ElementBytes(dtype));
  const char* params = ctx.in(0).as<char>();
  const Index* indices = ctx.in(1).as<Index>();
  char* out = ctx.out(0).as<char>();
  std::atomic<int64_t> wrong{-1};
  ParallelRange(ctx.pool, e.batch * e.outer * e.count,
                std::max<int64_t>(1, kElementGrain / std::max<int64_t>(e.inner, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t k = begin; k < end; ++k) {
                    const int64_t i = k % e.count, o = k / e.count;  // o counts batch and outer
                    const int64_t at = (o / e.outer) * e.count + i;
                    const int64_t index = indices[at];
                    if (index < 0 || index >= e.along) {
                      wrong.store(at, std::memory_order_relaxed);
                      continue;
                    }
                    const char* from = params + (o * e.along + index) * e.inner * size;
                    CopyElements(dtype, from, out + k * e.inner * size, e.inner);
                  }
                });
  if (const int64_t at = wrong.load(); at >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", indices[at], " at position ", at, " is not in [0, ", e.along, ")"));
  }
  return absl::OkStatus();
}

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(int64_t batch_dims) : batch_dims_(batch_dims) {}

  absl::Status Run(const KernelContext& ctx) const override {
    const Shape &params = ctx.in(0).shape, &indices = ctx.in(1).shape;
    int64_t axis = 0;
    if (ctx.inputs.size() > 2) {
      FLOE_ASSIGN_OR_RETURN(axis, ReadInt(ctx.in(2)));
    }
    FLOE_ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, params.rank()));
    const int64_t batch_dims = batch_dims_ < 0 ? batch_dims_ + indices.rank() : batch_dims_;
    GatherExtents e;
    for (int i = 0; i < params.rank(); ++i) {
      int64_t& part = i < batch_dims ? e.batch
                      : i < along    ? e.outer
                      : i == along   ? e.along
                                     : e.inner;
      part *= params.dim(i);
    }
    for (int i = static_cast<int>(batch_dims); i < indices.rank(); ++i) e.count *= indices.dim(i);
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    if (ctx.in(1).dtype == DType::kInt16) return GatherSlices<int16_t>(ctx, e);
    if (ctx.in(1).dtype == DType::kInt32) return GatherSlices<int32_t>(ctx, e);
    if (ctx.in(1).dtype == DType::kInt64) return GatherSlices<int64_t>(ctx, e);
    return absl::InvalidArgumentError(
        absl::StrCat("indices have type ", DTypeName(ctx.in(1).dtype)));
  }

 private:
  int64_t batch_dims_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeGather(const KernelArgs& args) {
  return std::make_unique<GatherKernel>(args.node.attrs.Int("batch_dims"));
}
FLOE_REGISTER_KERNEL(GatherV2, kCpu, MakeGather);
FLOE_REGISTER_KERNEL(Gather, kCpu, MakeGather);

}  // namespace
}  // namespace floe::kernels
