#include "kernels/cpu/linalg/matrices.h"

#include "base/budget.h"
#include "kernels/cpu/plain_sum.h"

namespace floe::kernels {
namespace {

template <class W>
using StoredAs =
    std::conditional_t<kIsComplex<W>, Complexes, TypeList<float, double, Half, BFloat16>>;

}  // namespace

template <class W>
void Load(const TensorView& in, int64_t k, Matrix<W>* m) {
  ForDType(in.dtype, StoredAs<W>{}, [&](auto type) {
    using T = decltype(type);
    const T* x = in.as<T>() + k * m->size();
    for (int64_t r = 0; r < m->rows(); ++r) {
      for (int64_t c = 0; c < m->cols(); ++c) (*m)(r, c) = PlainWide(*x++);
    }
  });
}

template <class W>
void Store(const Matrix<W>& m, int64_t k, const TensorView& out) {
  ForDType(out.dtype, StoredAs<W>{}, [&](auto type) {
    using T = decltype(type);
    T* y = out.as<T>() + k * m.size();
    for (int64_t r = 0; r < m.rows(); ++r) {
      for (int64_t c = 0; c < m.cols(); ++c) *y++ = PlainNarrow<T>(m(r, c));
    }
  });
}

template <class W>
absl::StatusOr<MemoryShare> TakeMatrices(int64_t elements) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(sizeof(W)), &bytes))
    return absl::ResourceExhaustedError("the matrices are larger than memory can be");
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(bytes));
  return TakeMemory(bytes);
}

template void Load(const TensorView&, int64_t, Matrix<double>*);
template void Load(const TensorView&, int64_t, Matrix<ComplexDouble>*);
template void Store(const Matrix<double>&, int64_t, const TensorView&);
template void Store(const Matrix<ComplexDouble>&, int64_t, const TensorView&);
template absl::StatusOr<MemoryShare> TakeMatrices<double>(int64_t);
template absl::StatusOr<MemoryShare> TakeMatrices<ComplexDouble>(int64_t);

}  // namespace floe::kernels
