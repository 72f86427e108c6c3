// Reductions over any set of axes. Each output element folds its inputs in row-major order of the
// reduced axes, however the kept axes are split over threads. What an element is folded with must
// not show how many others there are. No choice here depends on the size of axis 0 or 1 while it is
// kept, for these may hold the rows of requests.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/elementwise/binary_f32.h"
#include "kernels/cpu/move/grid_copy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce/reduce_f32.h"

namespace floe::kernels {
namespace {

// The input as alternating kept and reduced dims, joined where neighbours are alike.
struct ReducePlan {
  IntList kept, kept_strides, reduced, reduced_strides;
  int64_t outputs = 1, folded = 1;
  bool last_kept = false;  // outputs lie side by side in the input as in the output

  // Offset of the i-th combination of dims, the last running fastest.
  static int64_t Offset(const IntList& dims, const IntList& strides, int64_t i) {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      at += i % dims[k] * strides[k];
      i /= dims[k];
    }
    return at;
  }
};

absl::StatusOr<ReducePlan> MakePlan(const Shape& in, const TensorView& axes_view) {
  IntList axes;
  FLOE_RETURN_IF_ERROR(ReadInts(axes_view, &axes));
  absl::InlinedVector<bool, 8> is_reduced(in.rank(), false);
  for (int64_t axis : axes) {
    FLOE_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, in.rank()));
    if (is_reduced[a])
      return absl::InvalidArgumentError(absl::StrCat("axis ", a, " is named twice"));
    is_reduced[a] = true;
  }
  const IntList strides = DenseStrides(in);
  ReducePlan plan;
  int last = -1;  // 0: kept, 1: reduced
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t size = in.dim(i);
    (is_reduced[i] ? plan.folded : plan.outputs) *= size;
    if (size == 1) {
      // Rows of requests, were there more, would keep what is reduced on both sides apart.
      if (!is_reduced[i] && i <= 1) last = -1;
      continue;
    }
    IntList& dims = is_reduced[i] ? plan.reduced : plan.kept;
    IntList& steps = is_reduced[i] ? plan.reduced_strides : plan.kept_strides;
    if (last == static_cast<int>(is_reduced[i])) {
      dims.back() *= size;
      steps.back() = strides[i];
    } else {
      dims.push_back(size);
      steps.push_back(strides[i]);
    }
    last = is_reduced[i];
  }
  int axis = in.rank() - 1;
  while (axis > 1 && in.dim(axis) == 1) --axis;
  plan.last_kept = axis >= 0 && !is_reduced[axis];
  return plan;
}

// One element is folded with nothing, not even the value that a fold begins with: as TensorFlow's,
// a sum of -0 alone is -0.
bool IsCopy(const ReducePlan& plan, const KernelContext& ctx) {
  if (plan.folded != 1) return false;
  CopyElements(ctx.in(0).dtype, ctx.in(0).data, ctx.out(0).data, plan.outputs);
  return true;
}

enum class FoldKind : uint8_t { kSum, kMean, kProduct, kMaximum, kMinimum, kAll, kAny, kNorm };

template <class T>
T Least() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
template <class T>
T Greatest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}

template <FoldKind kKind, class C>
C ReductionStart() {
  if constexpr (kKind == FoldKind::kProduct || kKind == FoldKind::kAll) return C(1);
  if constexpr (kKind == FoldKind::kMaximum) return Least<C>();
  if constexpr (kKind == FoldKind::kMinimum) return Greatest<C>();
  return C(0);
}

template <FoldKind kKind, class C>
C Step(C a, C x) {
  if constexpr (kKind == FoldKind::kSum || kKind == FoldKind::kMean) return WrapAdd(a, x);
  if constexpr (kKind == FoldKind::kNorm && kIsComplex<C>) return a + std::conj(x) * x;
  if constexpr (kKind == FoldKind::kNorm) return WrapAdd(a, WrapMul(x, x));
  if constexpr (kKind == FoldKind::kProduct) return WrapMul(a, x);
  if constexpr (kKind == FoldKind::kMaximum) return x >= a || x != x ? x : a;
  if constexpr (kKind == FoldKind::kMinimum) return x <= a || x != x ? x : a;
  if constexpr (kKind == FoldKind::kAll) return a && x;
  if constexpr (kKind == FoldKind::kAny) return a || x;
}

template <FoldKind kKind, class C>
C Finish(C a, int64_t n) {
  if constexpr (kKind == FoldKind::kMean) {
    if constexpr (std::is_integral_v<C> || kIsComplex<C>)
      return n == 0 ? C(0) : static_cast<C>(a / static_cast<C>(n));
    else
      return a / static_cast<C>(static_cast<float>(n));
  } else if constexpr (kKind == FoldKind::kNorm) {
    if constexpr (std::is_integral_v<C>) {
      // Wrapped around: what a NaN becomes, which narrow types take the low bits of.
      if (a < C(0)) return sizeof(C) < sizeof(int32_t) ? C(0) : std::numeric_limits<C>::min();
    }
    return static_cast<C>(std::sqrt(a));
  } else {
    return a;
  }
}

template <FoldKind kKind, class T>
class ReduceKernel : public Kernel {
 public:
  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const ReducePlan plan, MakePlan(ctx.in(0).shape, ctx.in(1)));
    if (kKind != FoldKind::kNorm && IsCopy(plan, ctx)) return absl::OkStatus();
    const T* x = ctx.in(0).as<T>();
    T* y = ctx.out(0).as<T>();
    const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(plan.folded, 1));
    ParallelRange(ctx.pool, plan.outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        y[i] = One(plan, x + ReducePlan::Offset(plan.kept, plan.kept_strides, i));
    });
    return absl::OkStatus();
  }

 private:
  // The sum of narrow integers need not fit them where their mean does.
  static constexpr bool kWidens = kKind == FoldKind::kMean && std::is_integral_v<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  using C = std::conditional_t<kWidens, Wide, Compute<T>>;
  static T One(const ReducePlan& plan, const T* x) {
    C fold = ReductionStart<kKind, C>();
    const int64_t run = plan.reduced.empty() ? 1 : plan.reduced.back();
    const int64_t stride = plan.reduced.empty() ? 1 : plan.reduced_strides.back();
    for (int64_t at = 0; at < plan.folded; at += run) {
      const T* from = x + ReducePlan::Offset(plan.reduced, plan.reduced_strides, at);
      for (int64_t k = 0; k < run; ++k) fold = Step<kKind>(fold, static_cast<C>(from[k * stride]));
    }
    return static_cast<T>(Finish<kKind>(fold, plan.folded));
  }
};

// Float32: long runs by vectors. When the last axis is reduced, each of its runs is folded at once.
// Otherwise lines of kept elements are folded onto each other, in the order of the runs' elements.
class ReduceF32Kernel : public Kernel {
 public:
  ReduceF32Kernel(FoldF32 fold, BinaryF32 join, float start, bool mean)
      : fold_(fold), join_(join), start_(start), mean_(mean) {}

  absl::Status Run(const KernelContext& ctx) const override {
    FLOE_ASSIGN_OR_RETURN(const ReducePlan plan, MakePlan(ctx.in(0).shape, ctx.in(1)));
    if (plan.folded == 0) {
      std::fill_n(ctx.out(0).as<float>(), plan.outputs,
                  mean_ ? std::numeric_limits<float>::quiet_NaN() : start_);
    } else if (plan.outputs != 0 && !IsCopy(plan, ctx)) {
      plan.last_kept       ? FoldLines(ctx, plan)
      : HasShortRuns(plan) ? FoldShortRuns(ctx, plan)
                           : FoldRuns(ctx, plan);
    }
    return absl::OkStatus();
  }

 private:
  void FoldRuns(const KernelContext& ctx, const ReducePlan& plan) const {
    const float* x = ctx.in(0).as<float>();
    float* y = ctx.out(0).as<float>();
    const int64_t run = plan.reduced.empty() ? 1 : plan.reduced.back();
    ParallelRange(ctx.pool, plan.outputs, std::max<int64_t>(1, kElementGrain / plan.folded),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const float* from = x + ReducePlan::Offset(plan.kept, plan.kept_strides, i);
                      float total = fold_(from, static_cast<size_t>(run));
                      for (int64_t at = run; at < plan.folded; at += run) {
                        const float next =
                            fold_(from + ReducePlan::Offset(plan.reduced, plan.reduced_strides, at),
                                  static_cast<size_t>(run));
                        join_(&total, &next, &total, 1);
                      }
                      y[i] = mean_ ? total / static_cast<float>(plan.folded) : total;
                    }
                  });
  }

  // Runs that are too short to be folded one by one, beside those of other outputs.
  static bool HasShortRuns(const ReducePlan& plan) {
    constexpr int64_t kShort = 32;
    return plan.reduced.size() > 1 && plan.reduced.back() <= kShort &&
           (plan.kept.empty() || plan.kept_strides.back() == plan.reduced.back());
  }

  // Runs of neighbouring outputs are one line: the lines are folded onto each other first.
  void FoldShortRuns(const KernelContext& ctx, const ReducePlan& plan) const {
    constexpr int64_t kLine = 1024;
    const float* x = ctx.in(0).as<float>();
    float* y = ctx.out(0).as<float>();
    const int64_t run = plan.reduced.back(), most = kLine / run;
    const int64_t neighbours = plan.kept.empty() ? 1 : plan.kept.back();
    ParallelRange(ctx.pool, plan.outputs, std::max<int64_t>(1, kElementGrain / plan.folded),
                  [&](int64_t begin, int64_t end) {
                    float line[kLine];
                    for (int64_t i = begin, count = 0; i < end; i += count) {
                      count = std::min({most, end - i, neighbours - i % neighbours});
                      const auto floats = static_cast<size_t>(count * run);
                      const float* from = x + ReducePlan::Offset(plan.kept, plan.kept_strides, i);
                      std::copy_n(from, floats, line);
                      for (int64_t at = run; at < plan.folded; at += run) {
                        join_(line,
                              from + ReducePlan::Offset(plan.reduced, plan.reduced_strides, at),
                              line, floats);
                      }
                      for (int64_t k = 0; k < count; ++k) {
                        const float total = fold_(line + k * run, static_cast<size_t>(run));
                        y[i + k] = mean_ ? total / static_cast<float>(plan.folded) : total;
                      }
                    }
                  });
  }

  void FoldLines(const KernelContext& ctx, const ReducePlan& plan) const {
    const float* x = ctx.in(0).as<float>();
    float* y = ctx.out(0).as<float>();
    // Of one output alone, or of axes that all hold one element, nothing is in `kept`.
    const bool one = plan.kept.empty() || plan.kept_strides.back() != 1;
    const int64_t line = one ? 1 : plan.kept.back(), lines = plan.outputs / line;
    const int64_t grain = std::max<int64_t>(1, kElementGrain / (line * plan.folded));
    ParallelRange(ctx.pool, lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* from = x + ReducePlan::Offset(plan.kept, plan.kept_strides, i * line);
        float* to = y + i * line;
        std::fill_n(to, line, start_);
        for (int64_t k = 0; k < plan.folded; ++k) {
          join_(to, from + ReducePlan::Offset(plan.reduced, plan.reduced_strides, k), to,
                static_cast<size_t>(line));
        }
        const auto count = static_cast<float>(plan.folded);
        for (int64_t j = 0; mean_ && j < line; ++j) to[j] /= count;
      }
    });
  }

  FoldF32 fold_;
  BinaryF32 join_;
  float start_;
  bool mean_;
};

template <FoldKind kKind, class T>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelArgs&) {
  if constexpr (std::is_same_v<T, float> && kKind != FoldKind::kNorm) {
    const FoldsF32 folds = PickFoldsF32();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    switch (kKind) {
      case FoldKind::kProduct:
        return std::make_unique<ReduceF32Kernel>(folds.product, FindBinaryF32("Mul").vectors, 1.0f,
                                                 false);
      case FoldKind::kMaximum:
        return std::make_unique<ReduceF32Kernel>(folds.maximum, FindBinaryF32("Maximum").vectors,
                                                 -kInfinity, false);
      case FoldKind::kMinimum:
        return std::make_unique<ReduceF32Kernel>(folds.minimum, FindBinaryF32("Minimum").vectors,
                                                 kInfinity, false);
      default:
        return std::make_unique<ReduceF32Kernel>(folds.sum, FindBinaryF32("Add").vectors, 0.0f,
                                                 kKind == FoldKind::kMean);
    }
  } else {
    return std::make_unique<ReduceKernel<kKind, T>>();
  }
}

FLOE_REGISTER_KERNELS(Sum, kCpu, (Make<FoldKind::kSum, T>), Numbers);
FLOE_REGISTER_KERNELS(Mean, kCpu, (Make<FoldKind::kMean, T>), Numbers);
FLOE_REGISTER_KERNELS(Prod, kCpu, (Make<FoldKind::kProduct, T>), Numbers);
FLOE_REGISTER_KERNELS(Max, kCpu, (Make<FoldKind::kMaximum, T>), Reals);
FLOE_REGISTER_KERNELS(Min, kCpu, (Make<FoldKind::kMinimum, T>), Reals);
FLOE_REGISTER_KERNELS(All, kCpu, (Make<FoldKind::kAll, T>), Booleans);
FLOE_REGISTER_KERNELS(Any, kCpu, (Make<FoldKind::kAny, T>), Booleans);
FLOE_REGISTER_KERNELS(EuclideanNorm, kCpu, (Make<FoldKind::kNorm, T>), Numbers);

}  // namespace
}  // namespace floe::kernels
