// Matrix multiplication of half floats, small integers and complex numbers.
#include <complex>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/dtypes.h"
#include "kernels/cpu/matmul.h"

namespace floe::kernels {
namespace {

template <class T>
using Sum = std::conditional_t<kIsComplex<T>, std::complex<double>,
                               std::conditional_t<std::is_integral_v<T>, int64_t, double>>;

template <class S, class T>
S Widen(T value, bool conjugate) {
  if constexpr (kIsComplex<T>) {
    return conjugate ? S(std::conj(value)) : S(value);
  } else {
    return static_cast<S>(static_cast<Compute<T>>(value));
  }
}

template <class A, class B, class C>
class TypedMatMul final : public MatMulKernel {
 public:
  TypedMatMul(const KernelArgs& args, const Epilogue& epilogue)
      : MatMulKernel(args, epilogue),
        conjugate_a_(args.node.attrs.Bool("adj_x")),
        conjugate_b_(args.node.attrs.Bool("adj_y")) {}
  std::string Route() const override { return "plain"; }

 private:
  using S = Sum<C>;

  void Multiply(const MatMulCall& call) const override {
    const A* a = static_cast<const A*>(call.a);
    const B* b = static_cast<const B*>(call.b);
    C* c = static_cast<C*>(call.c);
    const int64_t a_m = transpose_a_ ? 1 : call.k, a_k = transpose_a_ ? call.m : 1;
    const int64_t b_k = transpose_b_ ? 1 : call.n, b_n = transpose_b_ ? call.k : 1;
    std::vector<S> row(call.n);
    for (int64_t m = 0; m < call.m; ++m) {
      std::fill(row.begin(), row.end(), S(0));
      for (int64_t k = 0; k < call.k; ++k) {
        const S factor = Widen<S>(a[m * a_m + k * a_k], conjugate_a_);
        for (int64_t n = 0; n < call.n; ++n)
          row[n] = WrapAdd(row[n], WrapMul(factor, Widen<S>(b[k * b_k + n * b_n], conjugate_b_)));
      }
      for (int64_t n = 0; n < call.n; ++n) c[m * call.n + n] = Narrow(row[n]);
    }
  }

  static C Narrow(S sum) {
    if constexpr (kIsComplex<C>)
      return C(sum);
    else
      return static_cast<C>(static_cast<Compute<C>>(sum));
  }

  const bool conjugate_a_, conjugate_b_;  // of complex numbers: adjoint, not transposed
};

// The kernel of the first triple of types in the list that fits.
template <class A, class B, class C>
struct Triple {};
template <class... As, class... Bs, class... Cs>
std::unique_ptr<Kernel> FirstFit(const KernelArgs& args, const Epilogue& epilogue, DType out,
                                 Triple<As, Bs, Cs>...) {
  const DType a = args.inputs[0].type.dtype, b = args.inputs[1].type.dtype;
  std::unique_ptr<Kernel> kernel;
  const auto fits = [&](DType ta, DType tb, DType tc) { return ta == a && tb == b && tc == out; };
  (void)((fits(kDTypeOf<As>, kDTypeOf<Bs>, kDTypeOf<Cs>)
              ? (kernel = std::make_unique<TypedMatMul<As, Bs, Cs>>(args, epilogue), true)
              : false) ||
         ...);
  return kernel;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeTypedMatMul(const KernelArgs& args,
                                                        const Epilogue& epilogue) {
  const DType a = args.inputs[0].type.dtype, b = args.inputs[1].type.dtype;
  const DType out = args.node.attrs.Type("Tout", a);
  if (epilogue.bias || epilogue.activation != Activation::kNone)
    return absl::UnimplementedError(absl::StrCat("a bias or activation in ", DTypeName(a)));
  using F = std::complex<float>;
  using D = std::complex<double>;
  std::unique_ptr<Kernel> kernel = FirstFit(
      args, epilogue, out, Triple<Half, Half, Half>(), Triple<BFloat16, BFloat16, BFloat16>(),
      Triple<int16_t, int16_t, int16_t>(), Triple<F, F, F>(), Triple<D, D, D>(),
      Triple<int8_t, int8_t, int32_t>(), Triple<int8_t, uint8_t, int32_t>(),
      Triple<uint8_t, int8_t, int32_t>(), Triple<uint8_t, uint8_t, int32_t>(),
      Triple<int8_t, BFloat16, BFloat16>(), Triple<uint8_t, BFloat16, BFloat16>(),
      Triple<BFloat16, int8_t, BFloat16>(), Triple<BFloat16, uint8_t, BFloat16>());
  if (kernel != nullptr) return kernel;
  return absl::UnimplementedError(
      absl::StrCat("MatMul of ", DTypeName(a), " and ", DTypeName(b), " to ", DTypeName(out)));
}

}  // namespace floe::kernels
