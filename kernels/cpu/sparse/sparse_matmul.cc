// SparseTensorDenseMatMul.
#include <complex>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/function_kernel.h"
#include "kernels/cpu/move/grid_copy.h"

namespace floe::kernels {
namespace {

struct Adjoints {
  bool a, b;
};

template <class C>
C Conjugate(C value, bool adjoint) {
  if constexpr (kIsComplex<C>) return adjoint ? std::conj(value) : value;
  return value;
}

// Row by row of the dense matrix, in the order of the sparse one's values.
template <class T>
absl::Status MatMul(const KernelContext& ctx, Adjoints adjoint) {
  using C = Compute<T>;
  IntList indices;
  FLOE_RETURN_IF_ERROR(ReadInts(ctx.in(0), &indices));
  const TensorView &values = ctx.in(1), &b = ctx.in(3), &out = ctx.out(0);
  const int64_t rows = out.shape.dim(0), columns = out.shape.dim(1),
                inner = b.shape.dim(adjoint.b ? 1 : 0), width = b.shape.dim(1);
  if (ctx.in(0).shape != Shape({values.elements(), 2}))
    return absl::InvalidArgumentError(absl::StrCat("indices ", ctx.in(0).shape.ToString(),
                                                   " for values ", values.shape.ToString()));
  BudgetVector<C> sums(out.elements());
  for (int64_t i = 0; i < values.elements(); ++i) {
    const int64_t r = indices[2 * i + (adjoint.a ? 1 : 0)],
                  k = indices[2 * i + (adjoint.a ? 0 : 1)];
    if (i % 64 == 0) FLOE_RETURN_IF_ERROR(CheckRunTime());
    if (r < 0 || r >= rows || k < 0 || k >= inner)
      return absl::InvalidArgumentError(
          absl::StrCat("index [", indices[2 * i], ", ", indices[2 * i + 1], "] is out of range"));
    const C value = Conjugate(static_cast<C>(values.as<T>()[i]), adjoint.a);
    for (int64_t c = 0; c < columns; ++c) {
      const T factor = b.as<T>()[adjoint.b ? c * width + k : k * width + c];
      C& sum = sums[r * columns + c];
      sum = WrapAdd(sum, WrapMul(value, Conjugate(static_cast<C>(factor), adjoint.b)));
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) out.as<T>()[i] = static_cast<T>(sums[i]);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSparseMatmul(const KernelArgs& args) {
  const Adjoints adjoint{args.node.attrs.Bool("adjoint_a"), args.node.attrs.Bool("adjoint_b")};
  return FromFunction([adjoint](const KernelContext& ctx) {
    using Types =
        TypeList<float, double, int32_t, BFloat16, std::complex<float>, std::complex<double>>;
    absl::Status status;
    const bool known = ForDType(ctx.in(1).dtype, Types{},
                                [&](auto t) { status = MatMul<decltype(t)>(ctx, adjoint); });
    return known ? status
                 : absl::UnimplementedError(
                       absl::StrCat("a sparse matrix of ", DTypeName(ctx.in(1).dtype)));
  });
}
FLOE_REGISTER_KERNEL(SparseTensorDenseMatMul, kCpu, MakeSparseMatmul);

}  // namespace
}  // namespace floe::kernels
