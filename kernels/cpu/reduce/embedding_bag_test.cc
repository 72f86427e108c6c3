#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/cpu/every_isa_for_test.h"
#include "kernels/cpu/kernel_test_util.h"

namespace floe {
namespace {

constexpr int64_t kEntries = 50;

Tensor Table(int64_t features) {
  Tensor table = Tensor::Allocate(DType::kFloat32, Shape({kEntries, features}));
  for (int64_t i = 0; i < table.elements(); ++i)
    static_cast<float*>(table.mutable_data())[i] = std::sin(1.0f + 1.7f * static_cast<float>(i));
  return table;
}

template <class Index>
Tensor Indices(DType dtype, int64_t bags, int64_t bag) {
  Tensor indices = Tensor::Allocate(dtype, Shape({bags, bag}));
  for (int64_t i = 0; i < indices.elements(); ++i)
    static_cast<Index*>(indices.mutable_data())[i] = static_cast<Index>(i * 29 % kEntries);
  return indices;
}

Tensor Bags(const Tensor& table, const Tensor& indices, bool mean, int threads = 1) {
  Attrs attrs;
  attrs.Set("mean", mean);
  RunOptions options;
  options.threads = threads;
  const auto out = RunKernel("EmbeddingBag", attrs, {table, indices}, options);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0] : Tensor();
}

// A bag may be longer than the rows that are added at a time, and rows end within a vector.
TEST(EmbeddingBag, MatchesFloat64OnEveryIsa) {
  OnEveryIsa([] {
    for (const int64_t features : {1, 3, 8, 17, 32, 63, 100}) {
      for (const int64_t bag : {1, 2, 128, 300}) {
        for (const bool mean : {false, true}) {
          SCOPED_TRACE(testing::Message() << features << " features, bags of " << bag);
          const Tensor table = Table(features), indices = Indices<int32_t>(DType::kInt32, 5, bag);
          const Tensor got = Bags(table, indices, mean);
          ASSERT_EQ(got.shape(), Shape({5, features}));
          for (int64_t i = 0; i < got.elements(); ++i) {
            double want = 0;
            for (int64_t k = 0; k < bag; ++k)
              want += table.as<float>()[indices.as<int32_t>()[i / features * bag + k] * features +
                                        i % features];
            ASSERT_NEAR(got.as<float>()[i], mean ? want / static_cast<double>(bag) : want, 2e-4);
          }
        }
      }
    }
  });
}

TEST(EmbeddingBag, EmptyBagsAndBagsOfOne) {
  const Tensor table = Table(5);
  const Tensor sums = Bags(table, Indices<int64_t>(DType::kInt64, 3, 0), false);
  const Tensor means = Bags(table, Indices<int64_t>(DType::kInt64, 3, 0), true);
  ASSERT_EQ(sums.shape(), Shape({3, 5}));
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(sums.as<float>()[i], 0.0f);
    EXPECT_TRUE(std::isnan(means.as<float>()[i]));
  }
  const Tensor zero = Tensor::Vector(DType::kFloat32, std::vector<float>{-0.0f}).Reshaped({1, 1});
  EXPECT_TRUE(std::signbit(Bags(zero, Indices<int16_t>(DType::kInt16, 1, 1), true).as<float>()[0]));
}

TEST(EmbeddingBag, BitsDependNeitherOnTheBatchNorOnThreads) {
  const Tensor table = Table(70), all = Indices<int16_t>(DType::kInt16, 64, 40);
  const Tensor want = Bags(table, all, true);
  const Tensor split = Bags(table, all, true, 3);
  EXPECT_EQ(std::memcmp(split.data(), want.data(), want.bytes()), 0);
  for (int64_t row = 0; row < 64; ++row) {
    Tensor one = Tensor::Allocate(DType::kInt16, Shape({1, 40}));
    std::memcpy(one.mutable_data(), all.as<int16_t>() + row * 40, 80);
    const Tensor alone = Bags(table, one, true);
    EXPECT_EQ(std::memcmp(alone.data(), want.as<float>() + row * 70, alone.bytes()), 0) << row;
  }
}

}  // namespace
}  // namespace floe
