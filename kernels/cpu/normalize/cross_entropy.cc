// SoftmaxCrossEntropyWithLogits and its sparse form: the loss and its gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

// loss = -sum(label * log softmax), gradient = softmax - label.
template <class T, class Label>
absl::Status CrossEntropy(const KernelContext& ctx, const Label& label_at) {
  using C = Compute<T>;
  const Shape& out = ctx.out(1).shape;
  const int64_t rows = out.dim(0), classes = out.dim(1);
  const int64_t logit_rows = ctx.in(0).shape.dim(0), logit_cols = ctx.in(0).shape.dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    const auto logit = [&](int64_t c) {
      return static_cast<C>(
          ctx.in(0).as<T>()[(logit_rows == 1 ? 0 : r) * logit_cols + (logit_cols == 1 ? 0 : c)]);
    };
    C top = -std::numeric_limits<C>::infinity(), sum = 0, loss = 0;
    for (int64_t c = 0; c < classes; ++c) top = std::max(top, logit(c));
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(logit(c) - top);
    const C log_sum = std::log(sum);
    for (int64_t c = 0; c < classes; ++c) {
      const C label = label_at(r, c), log_p = logit(c) - top - log_sum;
      if (label != 0) loss -= label * log_p;
      if (ctx.out(1).data != nullptr)
        ctx.out(1).as<T>()[r * classes + c] = static_cast<T>(std::exp(log_p) - label);
    }
    if (ctx.out(0).data != nullptr) ctx.out(0).as<T>()[r] = static_cast<T>(loss);
  }
  return absl::OkStatus();
}

template <class T>
absl::Status DenseCrossEntropy(const KernelContext& ctx) {
  const Shape& labels = ctx.in(1).shape;
  return CrossEntropy<T>(ctx, [&](int64_t r, int64_t c) {
    return static_cast<Compute<T>>(ctx.in(1).as<T>()[(labels.dim(0) == 1 ? 0 : r) * labels.dim(1) +
                                                     (labels.dim(1) == 1 ? 0 : c)]);
  });
}

template <class T>
absl::Status SparseCrossEntropy(const KernelContext& ctx) {
  using C = Compute<T>;
  IntList labels;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(1), &labels));
  const int64_t classes = ctx.in(0).shape.dim(1);
  if (static_cast<int64_t>(labels.size()) != ctx.in(0).shape.dim(0))
    return absl::InvalidArgumentError(
        absl::StrCat(labels.size(), " labels for logits ", ctx.in(0).shape.ToString()));
  for (int64_t label : labels) {
    if (label < 0 || label >= classes)
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " is not in [0, ", classes, ")"));
  }
  return CrossEntropy<T>(ctx, [&](int64_t r, int64_t c) { return labels[r] == c ? C(1) : C(0); });
}

FLOE_REGISTER_KERNELS(SoftmaxCrossEntropyWithLogits, kCpu, MakeFunction<&DenseCrossEntropy<T>>,
                      Floats);
FLOE_REGISTER_KERNELS(SparseSoftmaxCrossEntropyWithLogits, kCpu,
                      MakeFunction<&SparseCrossEntropy<T>>, Floats);

}  // namespace
}  // namespace floe::kernels
