#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cuda/device_for_test.h"
#include "kernels/cuda/device_kernel.h"
#include "kernels/cuda/emit/product.h"
#include "kernels/cuda/gpu.h"

namespace floe::cuda {
namespace {

std::vector<float> Numbers(int64_t count, uint32_t seed) {
  const Tensor numbers = RandomTensor(Shape({count}), seed);
  return {numbers.as<float>(), numbers.as<float>() + count};
}

struct Product {
  int m, n, k;
  bool vectors = false;  // of A, B and C, where k and n allow it
  EpilogueArgs epilogue = {};
};

std::vector<float> RunGemm(KernelId kernel, int side_m, int side_n, const Product& p,
                           const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(static_cast<size_t>(p.m) * p.n, NAN);
  GemmArgs args = {};
  args.a = a.data();
  args.a_row = p.k;
  args.a_column = 1;
  args.a_vectors = p.vectors && p.k % 4 == 0;
  args.b = {b.data(), p.n, 1, p.vectors, p.n};
  args.c = c.data();
  args.c_row = p.n;
  args.c_vectors = p.vectors;
  args.m = p.m, args.n = p.n, args.k = p.k;
  for (int& dim : args.batch) dim = 1;
  args.epilogue = p.epilogue;
  const Launch launch = Launch::Of(kernel, {Blocks(p.m, side_m), Blocks(p.n, side_n), 1}, args);
  const absl::Status status = Emulate({launch});
  EXPECT_TRUE(status.ok()) << status;
  return c;
}

std::vector<double> Exact(const Product& p, const std::vector<float>& a,
                          const std::vector<float>& b) {
  std::vector<double> c(static_cast<size_t>(p.m) * p.n);
  for (int i = 0; i < p.m; ++i) {
    for (int j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int k = 0; k < p.k; ++k) sum += double{a[i * p.k + k]} * double{b[k * p.n + j]};
      c[i * p.n + j] = sum;
    }
  }
  return c;
}

// In ascending k, each product and sum rounded once: what every tile must give, to the bit.
std::vector<float> InOrder(const Product& p, const std::vector<float>& a,
                           const std::vector<float>& b) {
  std::vector<float> c(static_cast<size_t>(p.m) * p.n);
  for (int i = 0; i < p.m; ++i) {
    for (int j = 0; j < p.n; ++j) {
      float sum = 0;
      for (int k = 0; k < p.k; ++k) sum = __builtin_fmaf(a[i * p.k + k], b[k * p.n + j], sum);
      c[i * p.n + j] = sum + 0.0f;
    }
  }
  return c;
}

TEST(GemmTest, EveryTileSumsInAscendingOrder) {
  struct Kernel {
    KernelId id;
    int m, n;
  };
  const Kernel kernels[] = {{KernelId::gemm_128x128, 128, 128},
                            {KernelId::gemm_64x64, 64, 64},
                            {KernelId::gemm_32x32, 32, 32},
                            {KernelId::gemm_thin, 8, 32}};
  const int sizes[][3] = {{1, 1, 1},     {31, 33, 15},  {32, 32, 16},   {33, 31, 17},
                          {63, 64, 65},  {127, 129, 2}, {128, 128, 64}, {130, 132, 33},
                          {7, 100, 200}, {3, 4, 0},     {65, 68, 100}};
  for (const auto& [m, n, k] : sizes) {
    const std::vector<float> a = Numbers(int64_t{m} * k, 1), b = Numbers(int64_t{k} * n, 2);
    for (const bool vectors : {false, true}) {
      if (vectors && n % 4 != 0) continue;
      const Product product = {m, n, k, vectors};
      const std::vector<float> want = InOrder(product, a, b);
      for (const Kernel& kernel : kernels) {
        for (const EmulatorOptions& options : EveryOrder()) {
          const ScopedEmulatorOptions scoped(options);
          EXPECT_EQ(RunGemm(kernel.id, kernel.m, kernel.n, product, a, b), want)
              << m << " x " << n << " x " << k << ", tile " << kernel.m << " x " << kernel.n;
        }
      }
      const std::vector<double> exact = Exact(product, a, b);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], exact[i], 1e-5);
    }
  }
}

float Rounded(float x, Precision precision) {
  if (precision == Precision::kTf32) return FloatOfBits(ToTf32(x));
  return FloatOfBits(ToBf16(x, 0) << 16);
}
std::vector<float> Rounded(std::vector<float> numbers, Precision precision) {
  for (float& x : numbers) x = Rounded(x, precision);
  return numbers;
}

TEST(TensorCoreTest, RoundsAsPtxSays) {
  for (const float x : {0.0f, -1.5f, 3.14159274f, 1e-40f, -7e30f}) {
    EXPECT_NEAR(Rounded(x, Precision::kTf32), x, std::abs(x) * 0x1p-11 + 1e-40);
    EXPECT_NEAR(Rounded(x, Precision::kBf16), x, std::abs(x) * 0x1p-8 + 1e-40);
  }
  EXPECT_EQ(Rounded(1 + 0x1p-11f, Precision::kTf32), 1 + 0x1p-10f);  // away from 0
  EXPECT_EQ(Rounded(-1 - 0x1p-11f, Precision::kTf32), -1 - 0x1p-10f);
  EXPECT_EQ(Rounded(1 + 0x1p-8f, Precision::kBf16), 1);  // to the even one
  EXPECT_EQ(Rounded(1 + 3 * 0x1p-8f, Precision::kBf16), 1 + 0x1p-6f);
  EXPECT_EQ(Rounded(INFINITY, Precision::kTf32), INFINITY);
  EXPECT_EQ(Rounded(INFINITY, Precision::kBf16), INFINITY);
  EXPECT_TRUE(std::isnan(Rounded(NAN, Precision::kTf32)));
  EXPECT_TRUE(std::isnan(Rounded(NAN, Precision::kBf16)));
}

TEST(TensorCoreTest, SumsProductsOfRoundedFactors) {
  const int sizes[][3] = {{1, 1, 1}, {64, 64, 16}, {65, 68, 100}, {130, 33, 37}, {3, 4, 0}};
  for (const Precision precision : {Precision::kTf32, Precision::kBf16}) {
    const KernelId id = precision == Precision::kTf32 ? KernelId::gemm_tf32 : KernelId::gemm_bf16;
    for (const auto& [m, n, k] : sizes) {
      const std::vector<float> a = Numbers(int64_t{m} * k, 1), b = Numbers(int64_t{k} * n, 2);
      for (const bool vectors : {false, true}) {
        if (vectors && n % 4 != 0) continue;
        const Product product = {m, n, k, vectors};
        const std::vector<float> rounded_a = Rounded(a, precision),
                                 rounded_b = Rounded(b, precision);
        const std::vector<float> want = InOrder(product, rounded_a, rounded_b);
        for (const EmulatorOptions& options : EveryOrder()) {
          const ScopedEmulatorOptions scoped(options);
          EXPECT_EQ(RunGemm(id, 64, 64, product, a, b), want) << m << " x " << n << " x " << k;
        }
        const std::vector<double> exact = Exact(product, rounded_a, rounded_b);
        for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], exact[i], 1e-5);
      }
    }
  }
}

// A sum that underflows to -0 is 0, whether zeros are added beyond k or not.
TEST(GemmTest, AllTilesAgreeOnTheSignOfZero) {
  for (const int k : {1, 16}) {
    std::vector<float> a(static_cast<size_t>(k), 0.0f), b(static_cast<size_t>(k) * 4, 1e-30f);
    a.back() = -1e-30f;
    const Product product = {1, 4, k};
    for (const KernelId id : {KernelId::gemm_128x128, KernelId::gemm_32x32, KernelId::gemm_thin}) {
      for (const float c : RunGemm(id, 128, 128, product, a, b)) EXPECT_FALSE(std::signbit(c));
    }
  }
}

TEST(GemmTest, InfinitiesAndNaNStayInTheirElements) {
  std::vector<float> a = Numbers(3 * 5, 1), b = Numbers(5 * 6, 2);
  a[0] = INFINITY;
  b[5] = NAN;
  const Product product = {3, 6, 5};
  for (const KernelId id : {KernelId::gemm_64x64, KernelId::gemm_thin}) {
    const std::vector<float> c = RunGemm(id, 64, 64, product, a, b);
    EXPECT_TRUE(std::isinf(c[0]));
    EXPECT_TRUE(std::isnan(c[5]));
    EXPECT_TRUE(std::isfinite(c[6]));
  }
}

struct MatMulCase {
  std::string op;
  std::vector<int64_t> a, b;
  bool transpose_a = false, transpose_b = false;
};

Attrs AttrsOf(const MatMulCase& c) {
  Attrs attrs;
  const bool batch = c.op == "BatchMatMul";
  attrs.Set(batch ? "adj_x" : "transpose_a", c.transpose_a);
  attrs.Set(batch ? "adj_y" : "transpose_b", c.transpose_b);
  return attrs;
}

void ExpectAsOnCpu(const std::string& op, const Attrs& attrs, const std::vector<Tensor>& inputs,
                   uint64_t const_mask) {
  RunOptions reference;
  reference.kernels.gemm = GemmBackend::kReference;
  const auto want = RunKernel(op, attrs, inputs, reference);
  ASSERT_TRUE(want.ok()) << want.status();
  const Tensor got = RunInEveryOrder(op, attrs, inputs, const_mask);
  ASSERT_EQ(got.shape(), (*want)[0].shape());
  ExpectNear(got, (*want)[0].as<float>(), 1e-5);
}

TEST(MatMulOnDeviceTest, AgreesWithPlainLoops) {
  const MatMulCase cases[] = {
      {"MatMul", {5, 7}, {7, 9}},
      {"MatMul", {5, 7}, {9, 7}, false, true},
      {"MatMul", {7, 5}, {7, 12}, true},
      {"MatMul", {7, 40}, {9, 7}, true, true},
      {"MatMul", {300, 20}, {20, 70}},
      {"MatMul", {1, 300}, {300, 10}},
      {"BatchMatMul", {3, 20, 7}, {3, 7, 9}},
      {"BatchMatMul", {3, 20, 7}, {7, 8}},
      {"BatchMatMul", {2, 3, 20, 7}, {2, 1, 9, 7}, false, true},
      {"BatchMatMul", {2, 1, 7, 20}, {3, 7, 9}, true, false},
      {"BatchMatMul", {7, 20}, {4, 7, 9}, true, false},
      {"BatchMatMul", {2, 2, 3, 2, 4, 5}, {3, 1, 5, 8}},
      {"MatMul", {0, 7}, {7, 9}},
      {"MatMul", {5, 0}, {0, 9}},
  };
  for (const MatMulCase& c : cases) {
    const std::vector<Tensor> inputs = {RandomTensor(Shape(c.a), 1), RandomTensor(Shape(c.b), 2)};
    for (const uint64_t const_mask : {0, 2}) {
      SCOPED_TRACE(inputs[0].shape().ToString() + inputs[1].shape().ToString() +
                   (const_mask != 0 ? " constant" : ""));
      ExpectAsOnCpu(c.op, AttrsOf(c), inputs, const_mask);
    }
  }
}

TEST(MatMulOnDeviceTest, AppliesBiasAndEveryActivation) {
  for (int i = 0; i <= static_cast<int>(Activation::kMish); ++i) {
    SCOPED_TRACE(i);
    Attrs attrs;
    SetEpilogue({.activation = static_cast<Activation>(i), .alpha = 0.3f, .bias = 2}, &attrs);
    for (const int64_t rows : {5, 40}) {
      const std::vector<Tensor> inputs = {RandomTensor(Shape({rows, 17}), 1),
                                          RandomTensor(Shape({17, 33}), 2),
                                          RandomTensor(Shape({33}), 3)};
      ExpectAsOnCpu("MatMul", attrs, inputs, 6);
    }
  }
}

TEST(MatMulOnDeviceTest, RowsAloneHaveTheBitsOfABatch) {
  Attrs attrs;
  SetEpilogue({.activation = Activation::kGelu, .bias = 2}, &attrs);
  const std::vector<Tensor> inputs = {RandomTensor(Shape({70, 50}), 1),
                                      RandomTensor(Shape({50, 90}), 2),
                                      RandomTensor(Shape({90}), 3)};
  const auto all = RunKernel("MatMul", attrs, inputs, OnDevice(6));
  ASSERT_TRUE(all.ok());
  ExpectRowsAlone("MatMul", attrs, inputs, 1, (*all)[0], 6);
}

TEST(MatMulOnDeviceTest, ComputesOnTensorCoresWhereAsked) {
  Attrs attrs;
  SetEpilogue({.activation = Activation::kGelu, .bias = 2}, &attrs);
  const std::vector<Tensor> inputs = {RandomTensor(Shape({70, 50}), 1),
                                      RandomTensor(Shape({50, 90}), 2),
                                      RandomTensor(Shape({90}), 3)};
  const auto exact = RunKernel("MatMul", attrs, inputs, OnDevice(6));
  ASSERT_TRUE(exact.ok());
  for (const Precision precision : {Precision::kTf32, Precision::kBf16}) {
    RunOptions options = OnDevice(6);
    options.kernels.precision = precision;
    const auto all = RunKernel("MatMul", attrs, inputs, options);
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_FALSE(SameBits((*all)[0], (*exact)[0]));
    std::vector<double> want((*exact)[0].as<float>(),
                             (*exact)[0].as<float>() + (*exact)[0].elements());
    ExpectNear((*all)[0], want.data(), precision == Precision::kTf32 ? 4e-3 : 4e-2);
    for (int64_t row = 0; row < 70; row += 23) {
      const auto alone = RunKernel(
          "MatMul", attrs, {RowsOf(inputs[0], row, row + 1), inputs[1], inputs[2]}, options);
      ASSERT_TRUE(alone.ok()) << alone.status();
      EXPECT_TRUE(SameBits((*alone)[0], RowsOf((*all)[0], row, row + 1))) << row;
    }
  }
}

TEST(MatMulOnDeviceTest, RefusesWhatItCannotCompute) {
  const Tensor a = RandomTensor(Shape({5, 7}), 1), b = RandomTensor(Shape({7, 9}), 2);
  EXPECT_TRUE(Computes("MatMul", {}, {a, b}));
  EXPECT_FALSE(Computes("MatMul", {}, {a, RandomTensor(Shape({8, 9}), 2)}));
  EXPECT_FALSE(Computes("BatchMatMul", {}, {RandomTensor(Shape({1, 1, 1, 1, 1, 5, 7}), 1), b}));
  Attrs attrs;
  SetEpilogue({.bias = 2}, &attrs);
  EXPECT_FALSE(Computes("MatMul", attrs, {a, b, RandomTensor(Shape({8}), 3)}));
}

TEST(TileSideTest, FollowsTheNumberOfBlocks) {
  EXPECT_EQ(TileSideFor(64 * 112 * 112, 64, 1), TileSide::k64);
  EXPECT_EQ(TileSideFor(64 * 56 * 56, 256, 1), TileSide::k128);
  EXPECT_EQ(TileSideFor(32, 1024, 1), TileSide::k32);
}

}  // namespace
}  // namespace floe::cuda
