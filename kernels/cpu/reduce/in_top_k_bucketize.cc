// Numbers and classes put in order: InTopK and Bucketize; and what layout optimisers leave of axes.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// Fewer than k classes score above the target. Scores that are not finite leave no order.
bool InTop(const float* scores, int64_t classes, int64_t target, int64_t k) {
  if (target < 0 || target >= classes || !std::isfinite(scores[target])) return false;
  int64_t above = 0;
  for (int64_t i = 0; i < classes; ++i) {
    if (!std::isfinite(scores[i])) return false;
    above += scores[i] > scores[target] ? 1 : 0;
    if (above > k) return false;
  }
  return above < k;
}

absl::Status InTopK(const KernelContext& ctx, int64_t k) {
  IntList targets;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &targets));
  const int64_t classes = ctx.in(0).shape.dim(1);
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    ctx.out(0).as<bool>()[i] = InTop(ctx.in(0).as<float>() + row * classes, classes, targets[i], k);
  }
  return absl::OkStatus();
}
absl::StatusOr<std::unique_ptr<Kernel>> MakeInTopK(const KernelArgs& args) {
  const int64_t k = args.node.attrs.Int("k");
  return FromFunction([k](const KernelContext& ctx) { return InTopK(ctx, k); });
}
absl::Status InTopKV2(const KernelContext& ctx) {
  FLOE_ASSIGN_OR_RETURN(const int64_t k, ReadInt(ctx.in(2)));
  return InTopK(ctx, k);
}
FLOE_REGISTER_KERNEL(InTopK, kCpu, MakeInTopK, DType::kFloat32);
FLOE_REGISTER_KERNEL(InTopKV2, kCpu, MakeFunction<InTopKV2>, DType::kFloat32);

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBucketize(const KernelArgs& args) {
  return FromFunction([boundaries = args.node.attrs.Get<std::vector<float>>("boundaries", {})](
                          const KernelContext& ctx) {
    // TensorFlow compares integers as float32.
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      const auto bucket = std::upper_bound(boundaries.begin(), boundaries.end(),
                                           static_cast<C>(ctx.in(0).as<T>()[i]));
      ctx.out(0).as<int32_t>()[i] = static_cast<int32_t>(bucket - boundaries.begin());
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNELS(Bucketize, kCpu, MakeBucketize<T>, TypeList<int32_t, int64_t, float, double>);

struct Formats {
  std::string from, to;
};
Formats FormatsOf(const Attrs& attrs) {
  return {attrs.String("src_format", "NHWC"), attrs.String("dst_format", "NCHW")};
}

std::string SpatialAxes(std::string format) {
  std::erase_if(format, [](char axis) { return axis == 'N' || axis == 'C'; });
  return format;
}

// Numbers (or pairs) for each axis; for the spatial ones alone where there are two less.
absl::StatusOr<std::unique_ptr<Kernel>> MakeVecPermute(const KernelArgs& args) {
  const Formats all = FormatsOf(args.node.attrs);
  const Formats spatial{SpatialAxes(all.from), SpatialAxes(all.to)};
  return FromFunction([all, spatial](const KernelContext& ctx) -> absl::Status {
    const Shape& shape = ctx.in(0).shape;
    const auto count = static_cast<size_t>(shape.dim(0));
    const Formats& formats = count == all.from.size() ? all : spatial;
    if (count != formats.from.size())
      return absl::InvalidArgumentError(
          absl::StrCat("numbers of shape ", shape.ToString(), " for the axes ", all.from));
    const int64_t width = shape.elements() / static_cast<int64_t>(count),
                  bytes = width * static_cast<int64_t>(DTypeSize(ctx.in(0).dtype));
    for (size_t i = 0; i < count; ++i) {
      const auto from = static_cast<int64_t>(formats.from.find(formats.to[i]));
      CopyElements(ctx.in(0).dtype, ctx.in(0).as<char>() + from * bytes,
                   ctx.out(0).as<char>() + static_cast<int64_t>(i) * bytes, width);
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNEL(DataFormatVecPermute, kCpu, MakeVecPermute, DType::kInt32, DType::kInt64);

// Where each axis went.
template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeDimMap(const KernelArgs& args) {
  const Formats formats = FormatsOf(args.node.attrs);
  return FromFunction([formats](const KernelContext& ctx) -> absl::Status {
    const auto count = static_cast<T>(formats.from.size());
    for (int64_t i = 0; i < ctx.in(0).elements(); ++i) {
      const T axis = ctx.in(0).as<T>()[i];
      if (axis < -count || axis >= count)
        return absl::InvalidArgumentError(
            absl::StrCat("axis ", axis, " of the format ", formats.from));
      const char name = formats.from[static_cast<size_t>(axis < 0 ? axis + count : axis)];
      ctx.out(0).as<T>()[i] = static_cast<T>(formats.to.find(name));
    }
    return absl::OkStatus();
  });
}
FLOE_REGISTER_KERNELS(DataFormatDimMap, kCpu, MakeDimMap<T>, TypeList<int32_t, int64_t>);

}  // namespace
}  // namespace floe::kernels
