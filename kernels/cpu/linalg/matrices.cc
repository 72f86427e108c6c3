#include "kernels/cpu/linalg/matrices.h"

#include "base/budget.h"

namespace floe::kernels {

Matrices MatricesOf(const Shape& shape) {
  Matrices m;
  for (int i = 0; i + 2 < shape.rank(); ++i) m.count *= shape.dim(i);
  m.rows = shape.dim(shape.rank() - 2);
  m.cols = shape.dim(shape.rank() - 1);
  return m;
}

void Load(const TensorView& in, int64_t k, Matrix* m) {
  ForDType(in.dtype, Floats{}, [&](auto type) {
    using T = decltype(type);
    const T* x = in.as<T>() + k * m->size();
    for (int64_t r = 0; r < m->rows(); ++r) {
      for (int64_t c = 0; c < m->cols(); ++c) (*m)(r, c) = static_cast<Compute<T>>(*x++);
    }
  });
}

void Store(const Matrix& m, int64_t k, const TensorView& out) {
  ForDType(out.dtype, Floats{}, [&](auto type) {
    using T = decltype(type);
    T* y = out.as<T>() + k * m.size();
    for (int64_t r = 0; r < m.rows(); ++r) {
      for (int64_t c = 0; c < m.cols(); ++c)
        *y++ = static_cast<T>(static_cast<Compute<T>>(m(r, c)));
    }
  });
}

absl::StatusOr<MemoryShare> TakeMatrices(int64_t elements) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(sizeof(double)), &bytes))
    return absl::ResourceExhaustedError("the matrices are larger than memory can be");
  FLOE_RETURN_IF_ERROR(CheckBlockBytes(bytes));
  return TakeMemory(bytes);
}

}  // namespace floe::kernels
