#include "kernels/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/hwy_targets.h"

namespace floe::kernels {
namespace {

std::vector<float> Random(size_t count, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<float> values(count);
  for (float& v : values) v = 2 * std::min(static_cast<float>(rng()) * 0x1p-32F, 1 - 0x1p-24F) - 1;
  return values;
}

// Calls body(kernels) for every instruction set that this CPU has.
template <typename Body>
void ForEveryIsa(const Body& body) {
  for (int64_t isa : IsasToTest()) {
    hwy::SetSupportedTargetsForTest(isa);
    SCOPED_TRACE(hwy::TargetName(isa));
    body(PickGemm());
    hwy::SetSupportedTargetsForTest(0);
    if (testing::Test::HasFatalFailure()) return;
  }
}

constexpr float kCanary = 12345.0f;
constexpr int64_t kGap = 3;  // canaries between rows of C

// Rows described by `rows` and `runs` over `a`, times b[k][n].
struct Problem {
  std::vector<float> a, b, bias;
  std::vector<float> minus;  // from b; may be empty
  GemmRows rows;
  GemmRuns runs;
  int64_t m = 0, n = 0;
  Activation activation = Activation::kNone;

  int64_t Offset(int64_t row, int64_t k) const {
    const int64_t run = k / runs.length;
    return row / rows.per_line * rows.line_stride + row % rows.per_line * rows.stride +
           run / runs.per_group * runs.group_stride + run % runs.per_group * runs.stride +
           k % runs.length;
  }
};

Problem Dense(int64_t m, int64_t k, int64_t n) {
  Problem p;
  p.a = Random(m * k, 1);
  p.b = Random(k * n, 2);
  p.bias = Random(n, 3);
  p.rows = {nullptr, INT64_MAX, k, 0};
  p.runs.length = k;
  p.m = m;
  p.n = n;
  return p;
}

// C of rows [row, row + count), with canaries behind each row.
std::vector<float> Multiply(const GemmKernels& kernels, const Problem& p, int64_t row,
                            int64_t count, int threads) {
  const int64_t k = p.runs.k(), ld = p.n + kGap;
  AlignedBuffer packed(kernels.PackedFloats(k, p.n) * sizeof(float)), minus(packed.size());
  PackGemm(kernels, p.b.data(), p.n, 1, k, p.n, reinterpret_cast<float*>(packed.data()));
  std::vector<float> bias = p.bias;
  bias.resize(p.n + kernels.lanes, 0.0f);
  std::vector<float> c(count * ld, kCanary);
  GemmTask task;
  task.a = p.rows;
  task.a.base = p.a.data() + p.Offset(row, 0);
  task.runs = p.runs;
  task.b = reinterpret_cast<const float*>(packed.data());
  if (!p.minus.empty()) {
    PackGemm(kernels, p.minus.data(), p.n, 1, k, p.n, reinterpret_cast<float*>(minus.data()));
    task.b_minus = reinterpret_cast<const float*>(minus.data());
  }
  task.bias = p.bias.empty() ? nullptr : bias.data();
  task.n = p.n;
  task.c = c.data();
  task.ldc = ld;
  task.activation = p.activation;
  ThreadPool pool(threads);
  EXPECT_TRUE(RunGemm(kernels, task, count, pool).ok());
  return c;
}

void ExpectRight(const GemmKernels& kernels, const Problem& p) {
  const std::vector<float> c = Multiply(kernels, p, 0, p.m, 1);
  const int64_t k = p.runs.k(), ld = p.n + kGap;
  std::vector<double> row(k);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t x = 0; x < k; ++x) row[x] = p.a[p.Offset(i, x)];
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, size = 0;
      for (int64_t x = 0; x < k; ++x) {
        const double product = row[x] * p.b[x * p.n + j];
        sum += product;
        size += std::abs(product);
      }
      if (!p.bias.empty()) sum += p.bias[j];
      if (p.activation == Activation::kRelu && sum < 0) sum = 0;
      ASSERT_NEAR(c[i * ld + j], sum, 1e-5 * (size + 1))
          << p.m << "x" << k << "x" << p.n << " at " << i << "," << j;
    }
    for (int64_t j = p.n; j < ld; ++j)
      ASSERT_EQ(c[i * ld + j], kCanary) << "behind row " << i << ", n=" << p.n;
  }
}

TEST(Gemm, EveryTailMatchesFloat64OnEveryIsa) {
  ForEveryIsa([](const GemmKernels& kernels) {
    for (int64_t k : {1, 2, 5, 8, 40}) {
      for (int64_t m = 1; m <= 17; ++m) {
        for (int64_t n = 1; n <= 70; ++n)
          ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, Dense(m, k, n)));
      }
    }
  });
}

TEST(Gemm, BlocksOfKAndRowsMatchFloat64OnEveryIsa) {
  ForEveryIsa([](const GemmKernels& kernels) {
    for (const auto& [m, k, n] : std::vector<std::tuple<int, int, int>>{{1, 3136, 70},
                                                                        {2, 1000, 130},
                                                                        {9, 385, 33},
                                                                        {97, 769, 40},
                                                                        {200, 384, 65},
                                                                        {100, 1537, 5}}) {
      ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, Dense(m, k, n)));
    }
  });
}

TEST(Gemm, NoBiasAndReluAndEmptySums) {
  ForEveryIsa([](const GemmKernels& kernels) {
    Problem p = Dense(7, 20, 37);
    p.activation = Activation::kRelu;
    ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, p));
    p.bias.clear();
    ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, p));
    p = Dense(3, 0, 5);
    p.runs.count = 0;
    p.runs.length = 1;
    ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, p));
  });
}

// Overlapping rows in lines and runs in groups: what convolutions ask for.
Problem Windowed(int64_t lines, int64_t per_line, int64_t length, int64_t groups, int64_t per_group,
                 int64_t n) {
  Problem p;
  p.runs = {length, groups * per_group, per_group, 2 * length + 1, 101};
  p.rows = {nullptr, per_line, 3, 57};
  p.m = lines * per_line;
  p.n = n;
  p.a = Random(p.Offset(p.m - 1, p.runs.k() - 1) + 1, 4);
  p.b = Random(p.runs.k() * n, 5);
  p.bias = Random(n, 6);
  return p;
}

TEST(Gemm, RunsAndLinesMatchFloat64OnEveryIsa) {
  ForEveryIsa([](const GemmKernels& kernels) {
    for (int64_t per_line : {1, 5, 28, 300}) {
      for (int64_t length : {1, 3, 50, 400}) {
        ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, Windowed(3, per_line, length, 3, 1, 20)));
        ASSERT_NO_FATAL_FAILURE(ExpectRight(kernels, Windowed(2, per_line, length, 4, 5, 33)));
      }
    }
  });
}

void ExpectRowsAreIndependent(const GemmKernels& kernels, const Problem& p) {
  const int64_t ld = p.n + kGap;
  const std::vector<float> all = Multiply(kernels, p, 0, p.m, 1);
  for (int64_t row = 0; row < p.m; ++row) {
    const std::vector<float> alone = Multiply(kernels, p, row, 1, 1);
    ASSERT_EQ(std::memcmp(alone.data(), all.data() + row * ld, p.n * sizeof(float)), 0)
        << "row " << row;
  }
  for (int64_t count = 1; count <= p.m; ++count) {
    const std::vector<float> some = Multiply(kernels, p, 0, count, 1);
    ASSERT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0)
        << count << " rows";
  }
  for (int threads : {2, 3}) {
    const std::vector<float> split = Multiply(kernels, p, 0, p.m, threads);
    ASSERT_EQ(std::memcmp(split.data(), all.data(), split.size() * sizeof(float)), 0)
        << threads << " threads";
  }
}

TEST(Gemm, BitsOfARowDependOnNothingElse) {
  ForEveryIsa([](const GemmKernels& kernels) {
    ASSERT_NO_FATAL_FAILURE(ExpectRowsAreIndependent(kernels, Dense(33, 1000, 131)));
    ASSERT_NO_FATAL_FAILURE(ExpectRowsAreIndependent(kernels, Dense(33, 784, 10)));
    Problem sigmoid = Dense(33, 100, 150);
    sigmoid.activation = Activation::kSigmoid;
    ASSERT_NO_FATAL_FAILURE(ExpectRowsAreIndependent(kernels, sigmoid));
  });
}

// A difference of two matrices has the bits of the matrix that it is.
TEST(Gemm, SubtractsOnePackedMatrixFromAnother) {
  ForEveryIsa([](const GemmKernels& kernels) {
    for (int64_t m = 1; m <= 17; ++m) {
      for (const auto& [k, n] : std::vector<std::pair<int, int>>{{1, 1}, {37, 45}, {400, 140}}) {
        Problem difference = Dense(m, k, n), whole = difference;
        difference.minus = Random(k * n, 4);
        for (int64_t i = 0; i < k * n; ++i) whole.b[i] -= difference.minus[i];
        ASSERT_EQ(Multiply(kernels, difference, 0, m, 1), Multiply(kernels, whole, 0, m, 1))
            << m << "x" << k << "x" << n;
      }
    }
  });
}

TEST(Gemm, PacksTransposedWeightsToTheSamePanels) {
  ForEveryIsa([](const GemmKernels& kernels) {
    const int64_t k = 37, n = 45;
    const std::vector<float> b = Random(k * n, 7);
    std::vector<float> transposed(k * n);
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j) transposed[j * k + i] = b[i * n + j];
    }
    std::vector<float> one(kernels.PackedFloats(k, n), kCanary), two(one);
    PackGemm(kernels, b.data(), n, 1, k, n, one.data());
    PackGemm(kernels, transposed.data(), 1, k, k, n, two.data());
    ASSERT_EQ(one, two);
    ASSERT_EQ(std::count(one.begin(), one.end(), kCanary), 0);
  });
}

}  // namespace
}  // namespace floe::kernels
