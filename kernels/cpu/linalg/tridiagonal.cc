// TridiagonalSolve, in the tensors' own dtype, and Cross.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "base/budget.h"
#include "base/status.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// One system of n equations with `sides` right sides. Row 0 of the diagonals is the upper one,
// without its last element; row 2 the lower one, without its first.
template <class T>
class Tridiagonal {
 public:
  using Real = decltype(std::abs(T()));

  Tridiagonal(int64_t n, int64_t sides, bool perturb)
      : n_(n), sides_(sides), perturb_(perturb), u_(static_cast<size_t>(3 * n)) {}

  void Run(const T* diagonals, const T* right, bool pivots, T* x) {
    upper_ = diagonals;
    middle_ = diagonals + n_;
    lower_ = diagonals + 2 * n_;
    std::copy_n(right, n_ * sides_, x);
    if (perturb_) {
      Real largest = 0;
      for (int64_t i = 0; i < 3 * n_; ++i) largest = std::max(largest, std::abs(diagonals[i]));
      least_pivot_ = std::max(std::numeric_limits<Real>::min(),
                              std::numeric_limits<Real>::epsilon() * largest);
    }
    if (!(pivots ? Eliminate(x) : Sweep(x)))
      std::fill_n(x, n_ * sides_, T(std::numeric_limits<Real>::quiet_NaN()));
  }

 private:
  T& U(int64_t i, int diagonal) { return u_[static_cast<size_t>(3 * i + diagonal)]; }

  // Row i of x minus `factor` times row k.
  void Subtract(T* x, int64_t i, T factor, int64_t k) const {
    for (int64_t c = 0; c < sides_; ++c) x[i * sides_ + c] -= factor * x[k * sides_ + c];
  }
  void Divide(T* x, int64_t i, T by) const {
    for (int64_t c = 0; c < sides_; ++c) x[i * sides_ + c] /= by;
  }

  // False: the pivot is zero.
  bool CheckPivot(T* pivot) const {
    if (perturb_ && std::abs(*pivot) <= least_pivot_)
      *pivot = std::real(*pivot) < 0 ? -T(least_pivot_) : T(least_pivot_);
    return *pivot != T(0);
  }

  // Elimination with exchanges of neighbouring rows, which leave a second upper diagonal.
  bool Eliminate(T* x) {
    U(0, 0) = middle_[0];
    U(0, 1) = n_ > 1 ? upper_[0] : T(0);
    U(0, 2) = T(0);
    for (int64_t i = 0; i + 1 < n_; ++i) {
      const T below = lower_[i + 1], next = i + 2 < n_ ? upper_[i + 1] : T(0);
      U(i + 1, 2) = T(0);
      if (std::abs(U(i, 0)) >= std::abs(below)) {
        if (!CheckPivot(&U(i, 0))) return false;
        const T factor = below / U(i, 0);
        U(i + 1, 0) = middle_[i + 1] - factor * U(i, 1);
        U(i + 1, 1) = next;
        U(i, 2) = T(0);
        Subtract(x, i + 1, factor, i);
      } else {
        const T factor = U(i, 0) / below;
        U(i, 0) = below;
        U(i + 1, 0) = U(i, 1) - factor * middle_[i + 1];
        U(i, 1) = middle_[i + 1];
        U(i, 2) = next;
        U(i + 1, 1) = -factor * next;
        std::swap_ranges(x + i * sides_, x + (i + 1) * sides_, x + (i + 1) * sides_);
        Subtract(x, i + 1, factor, i);
      }
    }
    if (!CheckPivot(&U(n_ - 1, 0))) return false;
    for (int64_t i = n_ - 1; i >= 0; --i) {
      if (i + 1 < n_) Subtract(x, i, U(i, 1), i + 1);
      if (i + 2 < n_) Subtract(x, i, U(i, 2), i + 2);
      Divide(x, i, U(i, 0));
    }
    return true;
  }

  // Thomas's algorithm, without exchanges.
  bool Sweep(T* x) {
    T pivot = middle_[0];
    for (int64_t i = 0;; ++i) {
      if (pivot == T(0)) return false;
      Divide(x, i, pivot);
      if (i + 1 == n_) break;
      U(i, 0) = upper_[i] / pivot;
      pivot = middle_[i + 1] - lower_[i + 1] * U(i, 0);
      Subtract(x, i + 1, lower_[i + 1], i);
    }
    for (int64_t i = n_ - 2; i >= 0; --i) Subtract(x, i, U(i, 0), i + 1);
    return true;
  }

  int64_t n_, sides_;
  bool perturb_;
  Real least_pivot_ = 0;
  const T *upper_ = nullptr, *middle_ = nullptr, *lower_ = nullptr;
  BudgetVector<T> u_;  // of each row the diagonal and the two above it
};

template <class T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeTridiagonal(const KernelArgs& args) {
  const bool pivots = args.node.attrs.Bool("partial_pivoting", true);
  const bool perturb = args.node.attrs.Bool("perturb_singular");
  if (perturb && !pivots) {
    return absl::InvalidArgumentError(
        "TridiagonalSolve: perturb_singular needs partial_pivoting to be true");
  }
  return FromFunction([pivots, perturb](const KernelContext& ctx) -> absl::Status {
    const TensorView& out = ctx.out(0);
    if (out.elements() == 0) return absl::OkStatus();
    const int64_t n = out.shape.dim(out.shape.rank() - 2);
    const int64_t sides = out.shape.dim(out.shape.rank() - 1), size = n * sides;
    Tridiagonal<T> system(n, sides, perturb);
    RunWatch watch;
    for (int64_t k = 0; k < out.elements() / size && !watch.Stopped(); ++k) {
      system.Run(ctx.in(0).as<T>() + 3 * n * k, ctx.in(1).as<T>() + size * k, pivots,
                 out.as<T>() + size * k);
    }
    return watch.status();
  });
}
FLOE_REGISTER_KERNELS(TridiagonalSolve, kCpu, MakeTridiagonal<T>,
                      TypeList<float, double, std::complex<float>, std::complex<double>>);

template <class T>
absl::Status Cross(const KernelContext& ctx) {
  using C = Compute<T>;
  const auto minor = [](const T* a, const T* b, int i, int j) {
    const C left = static_cast<C>(static_cast<T>(WrapMul<C>(C(a[i]), C(b[j]))));
    const C right = static_cast<C>(static_cast<T>(WrapMul<C>(C(a[j]), C(b[i]))));
    return static_cast<T>(WrapSub<C>(left, right));
  };
  const T *a = ctx.in(0).as<T>(), *b = ctx.in(1).as<T>();
  T* y = ctx.out(0).as<T>();
  return WatchedRange(ctx.pool, ctx.out(0).elements() / 3, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
      y[i] = minor(a + i, b + i, 1, 2);
      y[i + 1] = minor(a + i, b + i, 2, 0);
      y[i + 2] = minor(a + i, b + i, 0, 1);
    }
  });
}
FLOE_REGISTER_KERNELS(Cross, kCpu, MakeFunction<&Cross<T>>, Reals);

}  // namespace
}  // namespace floe::kernels
