#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <thread>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/gemm/openblas.h"
#include "kernels/cpu/kernel_test_util.h"
#include "model/half.h"

namespace floe {
namespace {

using testing::HasSubstr;

std::vector<GemmBackend> Backends() {
  std::vector<GemmBackend> backends = {GemmBackend::kAuto, GemmBackend::kNative,
                                       GemmBackend::kReference};
  if (kernels::OpenBlas().ok()) backends.push_back(GemmBackend::kOpenBlas);
  return backends;
}

// Element (i, j) of the product of two row-major matrices, in float64.
double Product(const float* a, const float* b, int64_t m, int64_t k, int64_t n, bool ta, bool tb,
               int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t x = 0; x < k; ++x) {
    sum +=
        static_cast<double>(ta ? a[x * m + i] : a[i * k + x]) * (tb ? b[j * k + x] : b[x * n + j]);
  }
  return sum;
}

struct MatMulCase {
  int64_t m, k, n;
  bool transpose_a, transpose_b;
  uint64_t const_mask;
  Activation activation = Activation::kNone;
  bool bias;
};

void ExpectProduct(const MatMulCase& t, GemmBackend backend) {
  SCOPED_TRACE(testing::Message() << GemmBackendName(backend) << " " << t.m << "x" << t.k << "x"
                                  << t.n << " " << t.transpose_a << t.transpose_b << " const "
                                  << t.const_mask << " " << static_cast<int>(t.activation)
                                  << " bias " << t.bias);
  std::vector<Tensor> inputs = {RandomTensor(t.transpose_a ? Shape{t.k, t.m} : Shape{t.m, t.k}, 1),
                                RandomTensor(t.transpose_b ? Shape{t.n, t.k} : Shape{t.k, t.n}, 2)};
  if (t.bias) inputs.push_back(RandomTensor({t.n}, 3));
  Attrs attrs;
  attrs.Set("transpose_a", t.transpose_a);
  attrs.Set("transpose_b", t.transpose_b);
  SetEpilogue({.activation = t.activation, .bias = t.bias ? 2 : -1}, &attrs);
  const auto outputs = RunKernel("MatMul", attrs, inputs, {{backend}, 1, t.const_mask});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ((*outputs)[0].shape(), Shape({t.m, t.n}));
  const Epilogue epilogue{.activation = t.activation};
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      double want = Product(inputs[0].as<float>(), inputs[1].as<float>(), t.m, t.k, t.n,
                            t.transpose_a, t.transpose_b, i, j);
      if (t.bias) want += inputs[2].as<float>()[j];
      want = kernels::ActivatePlain(epilogue, want);
      ASSERT_NEAR((*outputs)[0].as<float>()[i * t.n + j], want,
                  1e-5 * std::sqrt(t.k) * std::max(1.0, std::abs(want)))
          << i << "," << j;
    }
  }
}

TEST(MatMul, TransposedConstantAndNotOnEveryBackend) {
  for (GemmBackend backend : Backends()) {
    for (int flags = 0; flags < 4; ++flags) {
      for (uint64_t const_mask : {0, 2, 6}) {
        for (int64_t m : {1, 2, 5, 40}) {
          ExpectProduct(
              {m, 33, 21, (flags & 1) != 0, (flags & 2) != 0, const_mask, Activation::kNone, true},
              backend);
          for (int64_t n : {1, 2, 4}) {
            ExpectProduct({m, 150, n, (flags & 1) != 0, (flags & 2) != 0, const_mask,
                           Activation::kNone, true},
                          backend);
          }
        }
      }
    }
    ExpectProduct({1, 784, 10, false, false, 2, Activation::kNone, false}, backend);
    ExpectProduct({3, 4, 2, false, false, 2, Activation::kNone, false}, backend);
  }
}

// From where the lanes take neighbours in k, and just below.
TEST(MatMul, FewColumnsOnEveryIsa) {
  OnEveryIsa([] {
    for (int64_t n = 1; n <= 11; ++n) {
      for (const int64_t k : {32 * n - 1, 32 * n, 32 * n + 7, int64_t{400}}) {
        for (const int64_t m : {1, 2, 9}) {
          for (const uint64_t mask : {0, 2, 6}) {
            ExpectProduct({m, k, n, false, false, mask, Activation::kRelu, true},
                          GemmBackend::kNative);
          }
        }
      }
    }
  });
}

TEST(MatMul, FusedActivationsOnEveryBackend) {
  for (GemmBackend backend : Backends()) {
    for (const Activation activation :
         {Activation::kRelu, Activation::kRelu6, Activation::kSigmoid, Activation::kTanh,
          Activation::kElu, Activation::kLeakyRelu, Activation::kSwish, Activation::kGelu,
          Activation::kGeluTanh, Activation::kMish, Activation::kSelu, Activation::kSoftplus,
          Activation::kSoftsign, Activation::kExp}) {
      for (int64_t n : {1, 19, 64}) {
        ExpectProduct({5, 90, n, false, false, 6, activation, true}, backend);
        ExpectProduct({5, 90, n, false, false, 0, activation, false}, backend);
      }
    }
  }
}

TEST(MatMul, EmptyDims) {
  for (GemmBackend backend : Backends()) {
    ExpectProduct({0, 5, 3, false, false, 2, Activation::kNone, true}, backend);
    ExpectProduct({4, 0, 3, false, false, 2, Activation::kRelu, true}, backend);
    ExpectProduct({4, 5, 0, false, false, 2, Activation::kNone, false}, backend);
  }
}

TEST(MatMul, OtherTypes) {
  const auto ints =
      RunKernel("MatMul", {},
                {Tensor::Vector<int32_t>(DType::kInt32, {1, 2, 3, 4}).Reshaped({2, 2}),
                 Tensor::Vector<int32_t>(DType::kInt32, {5, 6, 7, 8}).Reshaped({2, 2})});
  ASSERT_TRUE(ints.ok()) << ints.status();
  const int32_t* got = (*ints)[0].as<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(got, got + 4), (std::vector<int32_t>{19, 22, 43, 50}));
  const auto doubles =
      RunKernel("MatMul", {},
                {Tensor::Vector<double>(DType::kFloat64, {1e10, 1e-10}).Reshaped({1, 2}),
                 Tensor::Vector<double>(DType::kFloat64, {1, 1}).Reshaped({2, 1})});
  ASSERT_TRUE(doubles.ok()) << doubles.status();
  EXPECT_DOUBLE_EQ((*doubles)[0].as<double>()[0], 1e10 + 1e-10);
}

void ExpectRowsIndependent(int64_t columns) {
  Attrs attrs;
  SetEpilogue({.activation = Activation::kTanh, .bias = 2}, &attrs);
  const Tensor b = RandomTensor({500, columns}, 2), bias = RandomTensor({columns}, 3),
               all = RandomTensor({33, 500}, 1);
  const auto run = [&](int64_t begin, int64_t count, int threads, uint64_t mask) {
    const Tensor a = FloatTensor(
        {count, 500},
        std::vector<float>(all.as<float>() + begin * 500, all.as<float>() + (begin + count) * 500));
    auto outputs = RunKernel("MatMul", attrs, {a, b, bias}, {{}, threads, mask});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return (*outputs)[0];
  };
  const Tensor want = run(0, 33, 1, 6);
  for (int64_t row = 0; row < 33; ++row) {
    const Tensor one = run(row, 1, 1, 6);
    ASSERT_EQ(std::memcmp(one.data(), want.as<float>() + row * columns, one.bytes()), 0) << row;
  }
  for (int threads = 1; threads <= 3; ++threads) {
    for (uint64_t mask : {0, 2, 6}) {
      ASSERT_EQ(std::memcmp(run(0, 33, threads, mask).data(), want.data(), want.bytes()), 0)
          << threads;
    }
  }
}

TEST(MatMul, BitsOfARowDoNotDependOnTheBatchOrThreads) {
  ExpectRowsIndependent(70);
  ExpectRowsIndependent(3);
  ExpectRowsIndependent(10);
}

void ExpectBatchProduct(const Shape& a_shape, const Shape& b_shape, const Shape& c_shape,
                        bool adj_x, bool adj_y) {
  const Tensor a = RandomTensor(a_shape, 1), b = RandomTensor(b_shape, 2);
  Attrs attrs;
  attrs.Set("adj_x", adj_x);
  attrs.Set("adj_y", adj_y);
  const int64_t m = c_shape.dim(c_shape.rank() - 2), n = c_shape.dim(c_shape.rank() - 1);
  const int64_t k = a_shape.dim(a_shape.rank() - (adj_x ? 2 : 1));
  for (GemmBackend backend : Backends()) {
    for (uint64_t mask : {0, 2}) {
      SCOPED_TRACE(testing::Message() << GemmBackendName(backend) << " " << a_shape.ToString()
                                      << b_shape.ToString() << adj_x << adj_y << " const " << mask);
      const auto outputs = RunKernel("BatchMatMul", attrs, {a, b}, {{backend}, 1, mask});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ASSERT_EQ((*outputs)[0].shape(), c_shape);
      // Batch dims here are at most two: [outer, inner], counted from the end.
      const auto batch = [](const Shape& s, int from_end) {
        return s.rank() >= from_end ? s.dim(s.rank() - from_end) : 1;
      };
      for (int64_t o = 0; o < batch(c_shape, 4); ++o) {
        for (int64_t i = 0; i < batch(c_shape, 3); ++i) {
          const auto matrix = [&](const Shape& s) {
            return (batch(s, 4) == 1 ? 0 : o) * batch(s, 3) + (batch(s, 3) == 1 ? 0 : i);
          };
          const float* pa = a.as<float>() + matrix(a_shape) * m * k;
          const float* pb = b.as<float>() + matrix(b_shape) * k * n;
          const float* pc = (*outputs)[0].as<float>() + matrix(c_shape) * m * n;
          for (int64_t r = 0; r < m; ++r) {
            for (int64_t c = 0; c < n; ++c) {
              ASSERT_NEAR(pc[r * n + c], Product(pa, pb, m, k, n, adj_x, adj_y, r, c), 1e-5)
                  << o << i << r << c;
            }
          }
        }
      }
    }
  }
}

TEST(BatchMatMul, BroadcastsBatchDims) {
  ExpectBatchProduct({3, 4, 5}, {3, 5, 6}, {3, 4, 6}, false, false);
  ExpectBatchProduct({3, 4, 5}, {5, 6}, {3, 4, 6}, false, false);
  ExpectBatchProduct({4, 5}, {3, 5, 6}, {3, 4, 6}, false, false);
  ExpectBatchProduct({2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}, false, false);
  ExpectBatchProduct({2, 3, 4, 5}, {2, 1, 5, 6}, {2, 3, 4, 6}, false, false);
  ExpectBatchProduct({4, 5}, {5, 6}, {4, 6}, false, false);
}

TEST(BatchMatMul, Adjoints) {
  ExpectBatchProduct({3, 5, 4}, {3, 5, 6}, {3, 4, 6}, true, false);
  ExpectBatchProduct({3, 4, 5}, {3, 6, 5}, {3, 4, 6}, false, true);
  ExpectBatchProduct({3, 5, 4}, {6, 5}, {3, 4, 6}, true, true);
}

absl::StatusOr<Types> Infer(const std::string& op, const Attrs& attrs,
                            const std::vector<SymShape>& shapes) {
  Node node;
  node.op = FindOp(op);
  node.attrs = attrs;
  std::vector<ValueInfo> infos;
  infos.reserve(shapes.size());
  for (const SymShape& shape : shapes) infos.push_back({{DType::kFloat32, shape}, {}, {}});
  return node.op->infer(InferContext{node, infos});
}

TEST(MatMulInference, NamesBothShapesWhenInnerDimsDiffer) {
  const auto types = Infer("MatMul", {}, {{Dim::Rows(), 784}, {10, 784}});
  ASSERT_FALSE(types.ok());
  EXPECT_THAT(std::string(types.status().message()), HasSubstr("[rows,784]"));
  EXPECT_THAT(std::string(types.status().message()), HasSubstr("[10,784]"));
  EXPECT_FALSE(Infer("MatMul", {}, {{2, 3, 4}, {4, 5}}).ok());
  EXPECT_FALSE(Infer("BatchMatMul", {}, {{4}, {4, 5}}).ok());
  EXPECT_FALSE(Infer("BatchMatMul", {}, {{2, 3, 4}, {3, 4, 5}}).ok());
}

TEST(MatMulInference, KeepsRowsAndUnknownDims) {
  EXPECT_EQ((*Infer("MatMul", {}, {{Dim::Rows(), 784}, {784, 10}}))[0].shape,
            SymShape({Dim::Rows(), 10}));
  EXPECT_EQ((*Infer("MatMul", {}, {SymShape::UnknownRank(), {784, 10}}))[0].shape,
            SymShape({Dim::Unknown(), 10}));
  EXPECT_EQ((*Infer("BatchMatMul", {}, {{Dim::Rows(), 7, 3, 4}, {7, 4, 5}}))[0].shape,
            SymShape({Dim::Rows(), 7, 3, 5}));
}

RowMark Rows(const std::string& op, const Attrs& attrs, const std::vector<SymShape>& shapes,
             const std::vector<RowMark>& marks) {
  Node node;
  node.op = FindOp(op);
  node.attrs = attrs;
  std::vector<ValueInfo> infos;
  infos.reserve(shapes.size());
  for (const SymShape& shape : shapes) infos.push_back({{DType::kFloat32, shape}, {}, {}});
  const Types types = *node.op->infer(InferContext{node, infos});
  return node.op->rows(RowContext{node, marks, infos, types});
}

TEST(MatMulRows, KeptOnlyWhereEachRowStandsAlone) {
  constexpr RowMark kRows = RowMark::kRows, kConstant = RowMark::kConstant,
                    kMixed = RowMark::kMixed;
  const Dim rows = Dim::Rows();
  EXPECT_EQ(Rows("MatMul", {}, {{rows, 4}, {4, 5}}, {kRows, kConstant}), kRows);
  EXPECT_EQ(Rows("MatMul", {}, {{rows, 4}, {4, rows}}, {kRows, kRows}), kMixed);
  EXPECT_EQ(Rows("MatMul", {}, {{3, 4}, {4, 5}}, {kConstant, kConstant}), kConstant);
  Attrs transposed;
  transposed.Set("transpose_a", true);
  EXPECT_EQ(Rows("MatMul", transposed, {{rows, 4}, {rows, 5}}, {kRows, kRows}), kMixed);
  EXPECT_EQ(Rows("BatchMatMul", {}, {{rows, 3, 4}, {rows, 4, 5}}, {kRows, kRows}), kRows);
  EXPECT_EQ(Rows("BatchMatMul", {}, {{rows, 3, 4}, {4, 5}}, {kRows, kConstant}), kRows);
  EXPECT_EQ(Rows("BatchMatMul", {}, {{3, 4}, {rows, 4, 5}}, {kConstant, kRows}), kRows);
  EXPECT_EQ(Rows("BatchMatMul", {}, {{rows, 3, 4}, {rows, 4}}, {kRows, kRows}), kMixed);
  EXPECT_EQ(Rows("BatchMatMul", {}, {{rows, 4}, {4, 5}}, {kRows, kConstant}), kRows);
}

TEST(MatMul, RefusesInnerDimsThatInferenceCouldNotSee) {
  const std::vector<Tensor> right = {RandomTensor({2, 5}, 1), RandomTensor({5, 3}, 2)};
  auto made = MakeTestKernel("MatMul", {}, right);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto outputs =
      RunTestKernel(*(*made)->kernel, {RandomTensor({2, 7}, 1), right[1]}, (*made)->output_types);
  EXPECT_EQ(outputs.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(OpenBlas, SixCallersAtOnceGetRightAnswers) {
  const auto blas = kernels::OpenBlas();
  if (!blas.ok()) GTEST_SKIP() << blas.status();
  EXPECT_THAT(kernels::BlasDescription(), HasSubstr("OpenBLAS"));
  constexpr int64_t kM = 64, kK = 150, kN = 90;
  const auto work = [&](int caller, double* worst) {
    const Tensor a = RandomTensor({kM, kK}, caller), b = RandomTensor({kK, kN}, 100 + caller);
    std::vector<float> c(kM * kN);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::fill(c.begin(), c.end(), NAN);
      (*blas)->Multiply(kM, kN, kK, {a.as<float>(), kK}, {b.as<float>(), kN}, c.data(), kN);
      for (int64_t i = 0; i < kM; ++i) {
        for (int64_t j = 0; j < kN; ++j) {
          const double error = std::abs(c[i * kN + j] - Product(a.as<float>(), b.as<float>(), kM,
                                                                kK, kN, false, false, i, j));
          if (!(error <= *worst)) *worst = error;
        }
      }
    }
  };
  double worst[6] = {};
  std::vector<std::thread> callers;
  callers.reserve(6);
  for (int i = 0; i < 6; ++i) callers.emplace_back(work, i, &worst[i]);
  for (std::thread& caller : callers) caller.join();
  for (double w : worst) EXPECT_LT(w, 1e-4);
}

template <class A, class B>
void ExpectSmallProduct(DType a_type, DType b_type) {
  const std::vector<A> a = {static_cast<A>(-128), 127, 100, 3, static_cast<A>(255), 5};
  const std::vector<B> b = {static_cast<B>(-128), 1, 127, 7, 100, static_cast<B>(255)};
  Attrs attrs;
  attrs.Set("Tout", DType::kInt32);
  attrs.Set("adj_y", true);
  const auto out = RunKernel(
      "BatchMatMul", attrs,
      {Tensor::Vector(a_type, a).Reshaped({2, 3}), Tensor::Vector(b_type, b).Reshaped({2, 3})});
  ASSERT_TRUE(out.ok()) << out.status();
  const Tensor& product = out->at(0);
  ASSERT_EQ(product.dtype(), DType::kInt32);
  const auto* got = static_cast<const int32_t*>(product.data());
  for (int i = 0; i < 4; ++i) {
    int32_t sum = 0;
    for (int k = 0; k < 3; ++k) sum += int32_t{a[i / 2 * 3 + k]} * int32_t{b[i % 2 * 3 + k]};
    EXPECT_EQ(got[i], sum) << i;
  }
}

TEST(BatchMatMul, SmallIntegersGiveInt32) {
  ExpectSmallProduct<int8_t, int8_t>(DType::kInt8, DType::kInt8);
  ExpectSmallProduct<int8_t, uint8_t>(DType::kInt8, DType::kUInt8);
  ExpectSmallProduct<uint8_t, int8_t>(DType::kUInt8, DType::kInt8);
  ExpectSmallProduct<uint8_t, uint8_t>(DType::kUInt8, DType::kUInt8);
}

TEST(BatchMatMul, CombinationsWithoutAMeaningAreRefused) {
  const Tensor bytes = Tensor::Vector<int8_t>(DType::kInt8, {1}).Reshaped({1, 1});
  const Tensor one = FloatTensor({1, 1}, {1});
  Attrs attrs;
  attrs.Set("Tout", DType::kInt64);
  EXPECT_THAT(std::string(RunKernel("BatchMatMul", attrs, {bytes, bytes}).status().message()),
              HasSubstr("int8 times int8 cannot give int64"));
  EXPECT_THAT(std::string(RunKernel("BatchMatMul", {}, {one, bytes}).status().message()),
              HasSubstr("float32 times int8 cannot give float32"));
}

TEST(BatchMatMul, AdjointsOfComplexNumbersAreConjugated) {
  using C = std::complex<double>;
  const std::vector<C> a = {{1, 2}, {-3, .5}}, b = {{.25, -1}, {2, 2}};
  Attrs attrs;
  attrs.Set("adj_x", true);
  const auto out = RunKernel("BatchMatMul", attrs,
                             {Tensor::Vector(DType::kComplex128, a).Reshaped({2, 1}),
                              Tensor::Vector(DType::kComplex128, b).Reshaped({2, 1})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out->at(0).as<C>(), std::conj(a[0]) * b[0] + std::conj(a[1]) * b[1]);
}

TEST(MatMul, HalfFloatsAreRoundedOnce) {
  const std::vector<Half> a(300, Half(1.0f / 3)), b(300, Half(3.0f));
  const auto out = RunKernel("MatMul", {},
                             {Tensor::Vector(DType::kFloat16, a).Reshaped({1, 300}),
                              Tensor::Vector(DType::kFloat16, b).Reshaped({300, 1})});
  ASSERT_TRUE(out.ok()) << out.status();
  const float exact = 900 * static_cast<float>(a[0]);
  EXPECT_EQ(static_cast<float>(*out->at(0).as<Half>()), static_cast<float>(Half(exact)));
}

}  // namespace
}  // namespace floe
