#include "runtime/value_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/memory_budget.h"
#include "model/handle.h"

namespace floe {
namespace {

Tensor Take(ValuePool* pool, DType dtype, const Shape& shape) {
  auto tensor = pool->Allocate(dtype, shape);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor();
}

TEST(ValuePool, FreedMemoryServesTheNextValue) {
  ValuePool pool;
  const void* first;
  {
    const Tensor t = Take(&pool, DType::kFloat32, {1000});
    first = t.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kAlignment, 0u);
    EXPECT_GE(pool.used_bytes(), 4000u);
  }
  EXPECT_EQ(pool.used_bytes(), 0u);
  const size_t held = pool.held_bytes();
  EXPECT_GE(held, 4000u);
  for (int64_t n : {1000, 999, 950}) {
    const Tensor t = Take(&pool, DType::kFloat32, {n});
    EXPECT_EQ(t.data(), first) << n;
  }
  EXPECT_EQ(pool.held_bytes(), held);  // the high water is kept, and nothing more was needed
}

TEST(ValuePool, TrimGivesBackWhatIsNotUsed) {
  ValuePool pool;
  const Tensor kept = Take(&pool, DType::kInt64, {100});
  { const Tensor large = Take(&pool, DType::kFloat32, {1 << 20}); }
  const size_t held = pool.held_bytes();
  EXPECT_GE(held, size_t{4} << 20);
  const size_t given_back = pool.Trim();
  EXPECT_GE(given_back, size_t{4} << 20);
  EXPECT_EQ(pool.held_bytes(), held - given_back);
  EXPECT_EQ(pool.held_bytes(), pool.used_bytes());
  EXPECT_GE(pool.used_bytes(), 800u);
  EXPECT_EQ(pool.Trim(), 0u);
}

TEST(ValuePool, BlocksWasteAtMostAQuarter) {
  for (size_t bytes = 64; bytes < 100000; bytes += 37) {
    ValuePool pool;
    const size_t before = pool.used_bytes();
    const Tensor t = Take(&pool, DType::kInt8, {static_cast<int64_t>(bytes)});
    std::memset(t.view().data, 1, bytes);  // all of it is there, as a sanitizer knows
    // Beside the block there is the one that counts references.
    EXPECT_LE(pool.used_bytes() - before, bytes + bytes / 4 + 256) << bytes;
  }
}

TEST(ValuePool, StringsAndHandlesLiveAndDie) {
  ValuePool pool;
  const auto object = std::make_shared<Object>();
  {
    const Tensor strings = Take(&pool, DType::kString, {2, 3});
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(strings.as<std::string>()[i], "");
      strings.view().as<std::string>()[i] = std::string(100, 'x');
    }
    const Tensor handles = Take(&pool, DType::kVariant, {2});
    EXPECT_EQ(handles.as<Handle>()[1], nullptr);
    handles.view().as<Handle>()[1] = object;
    EXPECT_EQ(object.use_count(), 2);
  }
  EXPECT_EQ(object.use_count(), 1);
  EXPECT_EQ(pool.used_bytes(), 0u);
}

TEST(ValuePool, ValuesOutliveThePool) {
  Tensor tensor;
  {
    ValuePool pool;
    tensor = Take(&pool, DType::kInt32, {3});
  }
  tensor.view().as<int32_t>()[2] = 7;
  EXPECT_EQ(tensor.as<int32_t>()[2], 7);
}

TEST(ValuePool, EmptyValuesAndImpossibleOnes) {
  ValuePool pool;
  EXPECT_EQ(Take(&pool, DType::kFloat32, {0, 5}).elements(), 0);
  EXPECT_EQ(pool.held_bytes(), 0u);
  EXPECT_FALSE(pool.Allocate(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}).ok());
  EXPECT_FALSE(pool.Allocate(DType::kFloat32, {-1}).ok());
}

constexpr int64_t kMega = int64_t{1} << 20;

// Values of many sizes, one at a time: each would leave a block that no other can use.
TEST(ValuePool, HoldsNoMoreThanWasInUse) {
  ValuePool pool;
  size_t most = 0;
  for (int64_t bytes = 40 * kMega; bytes > kMega; bytes -= bytes / 5) {
    const Tensor t = Take(&pool, DType::kInt8, {bytes});
    most = std::max(most, pool.used_bytes());
    EXPECT_LE(pool.held_bytes(), most) << bytes;
  }
  const Tensor large = Take(&pool, DType::kInt8, {60 * kMega});
  EXPECT_LE(pool.held_bytes(), pool.used_bytes() + kMega);
}

TEST(ValuePool, BlocksArePaidForAsLongAsTheyAreHeld) {
  const MemoryBudget memory(100 * kMega);
  const MemoryScope scope(memory);
  ValuePool first, second;
  { const Tensor t = Take(&first, DType::kInt8, {40 * kMega}); }
  EXPECT_EQ(memory.in_use(), static_cast<int64_t>(first.held_bytes()));
  { const Tensor t = Take(&first, DType::kInt8, {40 * kMega}); }
  EXPECT_GE(memory.in_use(), 40 * kMega) << "kept for the next one";
  EXPECT_LT(memory.in_use(), 60 * kMega);
  // What one keeps makes room for another.
  const Tensor used = Take(&second, DType::kInt8, {64 * kMega});
  EXPECT_EQ(first.held_bytes(), 0u);
  EXPECT_EQ(memory.in_use(), static_cast<int64_t>(second.held_bytes()));
  const auto refused = first.Allocate(DType::kInt8, {64 * kMega});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(first.used_bytes(), 0u);
  EXPECT_LT(memory.in_use(), 70 * kMega) << "and nothing else came of it";
  const auto small = first.Allocate(DType::kInt8, {1000});
  EXPECT_TRUE(small.ok()) << small.status();
}

TEST(ValuePool, SharesEndWithThePool) {
  const MemoryBudget memory(100 * kMega);
  {
    const MemoryScope scope(memory);
    ValuePool pool;
    { const Tensor t = Take(&pool, DType::kInt8, {kMega}); }
    EXPECT_GT(memory.in_use(), kMega);
  }
  EXPECT_EQ(memory.in_use(), 0);
}

}  // namespace
}  // namespace floe
