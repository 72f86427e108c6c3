// EmbeddingBag: rows of the table are added up as they are read, in the order of their indices, so
// that the sums have the bits of Gather and Sum.
#include <algorithm>
#include <atomic>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce/add_rows_f32.h"

namespace floe::kernels {
namespace {

class EmbeddingBagKernel final : public Kernel {
 public:
  explicit EmbeddingBagKernel(bool mean) : mean_(mean) {}

  absl::Status Run(const KernelContext& ctx) const override {
    switch (ctx.in(1).dtype) {
      case DType::kInt16:
        return Bags<int16_t>(ctx);
      case DType::kInt32:
        return Bags<int32_t>(ctx);
      case DType::kInt64:
        return Bags<int64_t>(ctx);
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("indices have type ", DTypeName(ctx.in(1).dtype)));
    }
  }

 private:
  template <class Index>
  absl::Status Bags(const KernelContext& ctx) const {
    const Shape &table = ctx.in(0).shape, &indices = ctx.in(1).shape;
    const int64_t entries = table.dim(0), features = table.dim(1);
    const int64_t bag = indices.dim(indices.rank() - 1);
    const auto* const index = ctx.in(1).as<Index>();
    for (int64_t i = 0, count = indices.elements(); i < count; ++i) {
      if (index[i] < 0 || index[i] >= entries)
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index[i], " at position ", i, " is not in [0, ", entries, ")"));
    }
    if (ctx.out(0).elements() == 0) return absl::OkStatus();
    const float* const from = ctx.in(0).as<float>();
    float* const to = ctx.out(0).as<float>();
    const int64_t bags = ctx.out(0).elements() / features;
    const int64_t grain =
        std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, bag * features));
    ParallelRange(ctx.pool, bags, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        Sum(from, index + i * bag, bag, static_cast<size_t>(features), to + i * features);
    });
    return absl::OkStatus();
  }

  template <class Index>
  void Sum(const float* table, const Index* index, int64_t bag, size_t features, float* y) const {
    constexpr int64_t kPart = 128;
    const float* rows[kPart];
    // One row is added to nothing: its -0 stays -0.
    std::fill_n(y, features,
                bag == 1            ? -0.0f
                : mean_ && bag == 0 ? std::numeric_limits<float>::quiet_NaN()
                                    : 0.0f);
    for (int64_t begin = 0; begin < bag; begin += kPart) {
      const int64_t count = std::min(kPart, bag - begin);
      for (int64_t k = 0; k < count; ++k)
        rows[k] = table + static_cast<size_t>(index[begin + k]) * features;
      add_(rows, static_cast<size_t>(count), y, features);
    }
    for (size_t j = 0; mean_ && bag > 1 && j < features; ++j) y[j] /= static_cast<float>(bag);
  }

  const bool mean_;
  const AddRowsF32 add_ = PickAddRowsF32();
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeEmbeddingBag(const KernelArgs& args) {
  return std::make_unique<EmbeddingBagKernel>(args.node.attrs.Bool("mean"));
}
FLOE_REGISTER_KERNEL(EmbeddingBag, kCpu, MakeEmbeddingBag, DType::kFloat32);

}  // namespace
}  // namespace floe::kernels
