#include "kernels/cpu/matmul.h"
#include "kernels/cpu/plain_sum.h"

namespace floe::kernels {
namespace {

template <typename T>
class PlainMatMul final : public MatMulKernel {
 public:
  using MatMulKernel::MatMulKernel;
  std::string Route() const override { return "reference"; }

 private:
  void Multiply(const MatMulCall& call) const override {
    const T *a = static_cast<const T*>(call.a), *b = static_cast<const T*>(call.b);
    const T* bias = epilogue_.bias ? call.ctx.inputs.back().as<T>() : nullptr;
    T* c = static_cast<T*>(call.c);
    const int64_t a_m = transpose_a_ ? 1 : call.k, a_k = transpose_a_ ? call.m : 1;
    const int64_t b_k = transpose_b_ ? 1 : call.n, b_n = transpose_b_ ? call.k : 1;
    for (int64_t m = 0; m < call.m; ++m) {
      for (int64_t n = 0; n < call.n; ++n) {
        PlainSum<T> sum = 0;
        for (int64_t k = 0; k < call.k; ++k)
          sum += PlainProduct(a[m * a_m + k * a_k], b[k * b_k + n * b_n]);
        c[m * call.n + n] = PlainFinish(epilogue_, sum, bias == nullptr ? nullptr : bias + n);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> MakePlainMatMul(const KernelArgs& args, const Epilogue& epilogue,
                                        DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::make_unique<PlainMatMul<double>>(args, epilogue);
    case DType::kInt32:
      return std::make_unique<PlainMatMul<int32_t>>(args, epilogue);
    case DType::kInt64:
      return std::make_unique<PlainMatMul<int64_t>>(args, epilogue);
    default:
      return std::make_unique<PlainMatMul<float>>(args, epilogue);
  }
}

}  // namespace floe::kernels
