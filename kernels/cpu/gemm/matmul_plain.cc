#include <algorithm>
#include <complex>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/gemm/epilogue_inputs.h"
#include "kernels/cpu/gemm/matmul.h"
#include "kernels/cpu/plain_sum.h"
#include "kernels/cpu/run_watch.h"

namespace floe::kernels {
namespace {

// A result of T from factors of A and B, which are widened to T's sum first.
template <typename T, typename A = T, typename B = T>
class PlainMatMul final : public MatMulKernel {
 public:
  PlainMatMul(const KernelArgs& args, const Epilogue& epilogue)
      : MatMulKernel(args, epilogue),
        conjugate_a_(args.node.attrs.Bool("adj_x")),
        conjugate_b_(args.node.attrs.Bool("adj_y")) {}
  std::string Route() const override { return "reference"; }

 private:
  using Sum = PlainSum<T>;

  template <typename F>
  static Sum Factor(F value, bool conjugate) {
    const Sum wide = static_cast<Sum>(PlainWide(value));
    if constexpr (kIsComplex<F>) return conjugate ? std::conj(wide) : wide;
    (void)conjugate;
    return wide;
  }

  // Some columns at once, so that B is read along its rows.
  static constexpr int64_t kColumns = 64;

  absl::Status Multiply(const MatMulCall& call) const override {
    const int64_t blocks = (call.n + kColumns - 1) / kColumns,
                  cost = std::max<int64_t>(call.k * std::min(call.n, kColumns), 1);
    return WatchedRange(call.ctx.pool, call.m * blocks, std::max<int64_t>(1, kElementGrain / cost),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i)
                            Columns(call, i / blocks, i % blocks * kColumns);
                        });
  }

  void Columns(const MatMulCall& call, int64_t m, int64_t first) const {
    const A* a = static_cast<const A*>(call.a) + m * (transpose_a_ ? 1 : call.k);
    const T* bias = BiasOf<T>(call.ctx, epilogue_);
    T* c = static_cast<T*>(call.c) + m * call.n;
    const int64_t a_k = transpose_a_ ? call.m : 1;
    const int64_t b_k = transpose_b_ ? 1 : call.n, b_n = transpose_b_ ? call.k : 1;
    const int64_t columns = std::min(kColumns, call.n - first);
    Sum sums[kColumns] = {};
    for (int64_t k = 0; k < call.k; ++k) {
      const Sum left = Factor(a[k * a_k], conjugate_a_);
      const B* right = static_cast<const B*>(call.b) + k * b_k + first * b_n;
      for (int64_t n = 0; n < columns; ++n) sums[n] += left * Factor(right[n * b_n], conjugate_b_);
    }
    for (int64_t n = 0; n < columns; ++n)
      c[first + n] = PlainFinish(epilogue_, sums[n], bias == nullptr ? nullptr : bias + first + n);
  }

  const bool conjugate_a_, conjugate_b_;
};

using MatMulTypes = TypeList<float, double, Half, BFloat16, int16_t, int32_t, int64_t,
                             std::complex<float>, std::complex<double>>;
using ByteTypes = TypeList<int8_t, uint8_t>;

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakePlainMatMul(const KernelArgs& args,
                                                        const Epilogue& epilogue) {
  const DType a = args.inputs[0].type.dtype, b = args.inputs[1].type.dtype;
  const DType out = args.node.attrs.Type("Tout", a);
  std::unique_ptr<Kernel> kernel;
  if (a == b && a == out) {
    ForDType(a, MatMulTypes{},
             [&](auto t) { kernel = std::make_unique<PlainMatMul<decltype(t)>>(args, epilogue); });
  } else if (out == DType::kInt32) {
    ForDType(a, ByteTypes{}, [&](auto s) {
      ForDType(b, ByteTypes{}, [&](auto t) {
        kernel = std::make_unique<PlainMatMul<int32_t, decltype(s), decltype(t)>>(args, epilogue);
      });
    });
  } else if (out == DType::kBFloat16) {
    ForDType(a == out ? b : a, ByteTypes{}, [&](auto t) {
      using T = decltype(t);
      if (a == out)
        kernel = std::make_unique<PlainMatMul<BFloat16, BFloat16, T>>(args, epilogue);
      else if (b == out)
        kernel = std::make_unique<PlainMatMul<BFloat16, T, BFloat16>>(args, epilogue);
    });
  }
  if (kernel == nullptr)
    return absl::UnimplementedError(
        absl::StrCat("a product of ", DTypeName(a), " and ", DTypeName(b), " as ", DTypeName(out)));
  return kernel;
}

}  // namespace floe::kernels
