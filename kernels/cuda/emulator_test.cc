// One kernel that is right, and the mistakes that the emulator is there to find, planted.
#include "kernels/cuda/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/denormals.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/kernel_list.h"
#include "kernels/cuda/order_for_test.h"

namespace floe::cuda {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int kThreads = 128;

struct TestArgs {
  const float* in;
  float* out;
  int count;
};

// Each thread gives its number to another by shared memory.
template <bool kBarrier>
void Rotate(const TestArgs& args) {
  GPU_SHARED(float, values, kThreads);
  const int t = static_cast<int>(threadIdx.x);
  values[t] = args.in[t];
  if (kBarrier) __syncthreads();
  args.out[t] = values[(t + 37) % kThreads];
}
GPU_KERNEL(good, TestArgs, kThreads) { Rotate<true>(args); }
GPU_KERNEL(missing_barrier, TestArgs, kThreads) { Rotate<false>(args); }

GPU_KERNEL(divergent_barrier, TestArgs, kThreads) {
  if (static_cast<int>(threadIdx.x) < args.count) __syncthreads();
  args.out[threadIdx.x] = 1;
}
GPU_KERNEL(barriers_of_two_branches, TestArgs, kThreads) {
  if (static_cast<int>(threadIdx.x) < args.count) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  args.out[threadIdx.x] = 1;
}
GPU_KERNEL(half_warp_shuffle, TestArgs, kThreads) {
  auto value = static_cast<float>(threadIdx.x);
  if (threadIdx.x % 32 < 16) value += __shfl_xor_sync(0xffffffffu, value, 1);
  args.out[threadIdx.x] = value;
}
GPU_KERNEL(mask_without_caller, TestArgs, kThreads) {
  args.out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, static_cast<float>(threadIdx.x), 1);
}
GPU_KERNEL(warp_sum, TestArgs, kThreads) {
  float sum = args.in[threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  // Halves of a warp on their own, as often as they like.
  const uint32_t half = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  const int rounds = threadIdx.x % 32 < 16 ? 4 : 1;
  float kept = sum;
  for (int i = 0; i < rounds; ++i) kept = __shfl_xor_sync(half, kept, 1);
  args.out[threadIdx.x] = __shfl_down_sync(0xffffffffu, kept, 1);
}
// What warps give each other by shared memory, with shuffles and no barrier of the block between.
GPU_KERNEL(only_shuffles_between, TestArgs, kThreads) {
  GPU_SHARED(float, values, kThreads / 32);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const float sum = __shfl_xor_sync(0xffffffffu, args.in[threadIdx.x], 1);
  if (threadIdx.x % 32 == 0) values[warp] = sum;
  __syncwarp();
  args.out[threadIdx.x] = values[(warp + 1) % (kThreads / 32)];
}
GPU_KERNEL(unwritten_shared, TestArgs, kThreads) {
  GPU_SHARED(float, values, kThreads + 1);
  values[threadIdx.x] = 1;
  __syncthreads();
  args.out[threadIdx.x] = values[threadIdx.x + 1];
}
GPU_KERNEL(beyond_global, TestArgs, kThreads) {
  args.out[threadIdx.x] = args.in[threadIdx.x + blockIdx.x * kThreads];
}
GPU_KERNEL(beyond_shared, TestArgs, kThreads) {
  GPU_SHARED(float, values, kThreads);
  values[threadIdx.x + 1] = args.in[threadIdx.x];
  __syncthreads();
  args.out[threadIdx.x] = values[threadIdx.x];
}

// Asynchronous copies: how many groups may be under way when they are used.
template <int kGroups>
void CopyTwice(const TestArgs& args) {
  GPU_SHARED(float, values, 2 * kThreads);
  const int t = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 2; ++i) {
    CopyAsync4(values + i * kThreads + t, args.in + t, t < args.count);
    CommitCopies();
  }
  WaitForCopies<kGroups>();
  __syncthreads();
  const int from = (t + 1) % kThreads;
  args.out[t] = values[from] + values[kThreads + from];
  WaitForCopies<0>();
}
GPU_KERNEL(good_copies, TestArgs, kThreads) { CopyTwice<0>(args); }
GPU_KERNEL(copy_not_awaited, TestArgs, kThreads) { CopyTwice<1>(args); }
GPU_KERNEL(add_blocks, TestArgs, kThreads) {
  if (threadIdx.x == 0) args.out[0] = args.out[0] * 3 + static_cast<float>(blockIdx.x);
}
GPU_KERNEL(denormal, TestArgs, kThreads) { args.out[threadIdx.x] = args.in[threadIdx.x] * 0.5f; }

struct Result {
  absl::Status status;
  std::vector<float> out;
};

Result RunOnce(void (*kernel)(const void*), int count = kThreads, Dim3 grid = {}) {
  const KernelEntry entry = {"test", reinterpret_cast<const void*>(kernel), kThreads,
                             static_cast<int>(sizeof(TestArgs))};
  // Arrays of their own, so that AddressSanitizer sees their ends.
  const auto in = std::make_unique<float[]>(kThreads);
  for (int i = 0; i < kThreads; ++i) in[i] = static_cast<float>(i);
  Result result;
  result.out.assign(kThreads, 0);
  const TestArgs args = {in.get(), result.out.data(), count};
  result.status = Emulate(entry, grid, &args);
  return result;
}

// In three orders; empty when the status or the bits depend on it.
std::vector<float> SameInAllOrders(void (*kernel)(const void*), int count = kThreads) {
  std::vector<std::vector<float>> results;
  for (const EmulatorOptions& options : EveryOrder()) {
    const ScopedEmulatorOptions scoped(options);
    const Result result = RunOnce(kernel, count);
    EXPECT_TRUE(result.status.ok()) << result.status;
    results.push_back(result.out);
    for (int i = 0; i < kThreads; ++i) {
      if (BitsOfFloat(results[0][i]) != BitsOfFloat(result.out[i])) return {};
    }
  }
  return results[0];
}

std::vector<float> Rotated() {
  std::vector<float> expected;
  expected.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) expected.push_back(static_cast<float>((i + 37) % kThreads));
  return expected;
}

TEST(EmulatorTest, RunsAKernelInEveryOrder) {
  EXPECT_THAT(SameInAllOrders(floe_good), ElementsAreArray(Rotated()));
}

TEST(EmulatorTest, BitsFollowTheOrderWithoutABarrier) {
  EXPECT_TRUE(SameInAllOrders(floe_missing_barrier).empty());
}

TEST(EmulatorTest, FindsADivergentBarrier) {
  for (const EmulatorOptions& options : EveryOrder()) {
    const ScopedEmulatorOptions scoped(options);
    const absl::Status status = RunOnce(floe_divergent_barrier, 100).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("block 0, 0, 0: of 128 threads"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("100 wait at __syncthreads of "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("28 have ended"));
  }
  EXPECT_TRUE(RunOnce(floe_divergent_barrier, kThreads).status.ok());
}

TEST(EmulatorTest, BarriersOfTwoBranchesAreNotOne) {
  const std::string message(RunOnce(floe_barriers_of_two_branches, 100).status.message());
  EXPECT_THAT(message, HasSubstr("100 wait at __syncthreads of "));
  EXPECT_THAT(message, HasSubstr("28 wait at __syncthreads of "));
}

TEST(EmulatorTest, FindsAShuffleOfHalfAWarp) {
  const std::string message(RunOnce(floe_half_warp_shuffle).status.message());
  EXPECT_THAT(message, HasSubstr("64 wait for the lanes 0xffffffff at "));
  EXPECT_THAT(message, HasSubstr("64 have ended"));
}

TEST(EmulatorTest, FindsAMaskWithoutItsCaller) {
  EXPECT_THAT(std::string(RunOnce(floe_mask_without_caller).status.message()),
              HasSubstr("among the lanes 0xffff"));
}

TEST(EmulatorTest, LanesExchangeNumbers) {
  const std::vector<float> sums = SameInAllOrders(floe_warp_sum);
  ASSERT_EQ(sums.size(), static_cast<size_t>(kThreads));
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(sums[i], 32 * (i / 32 * 32) + 31 * 16) << i;
}

TEST(EmulatorTest, BitsFollowTheOrderOfWarpsWithoutABarrier) {
  EXPECT_TRUE(SameInAllOrders(floe_only_shuffles_between).empty());
}

TEST(EmulatorTest, UnwrittenSharedMemoryIsNaN) {
  const std::vector<float> out = SameInAllOrders(floe_unwritten_shared);
  ASSERT_EQ(out.size(), static_cast<size_t>(kThreads));
  EXPECT_TRUE(std::isnan(out[kThreads - 1]));
  EXPECT_EQ(out[0], 1);
}

TEST(EmulatorTest, CopiesAreThereWhenAwaited) {
  const std::vector<float> out = SameInAllOrders(floe_good_copies, 100);
  ASSERT_EQ(out.size(), static_cast<size_t>(kThreads));
  EXPECT_EQ(out[40], 82);
  EXPECT_EQ(out[110], 0);
}

TEST(EmulatorTest, BitsFollowTheOrderWhereACopyIsNotAwaited) {
  EXPECT_TRUE(SameInAllOrders(floe_copy_not_awaited).empty());
}

TEST(EmulatorTest, BlocksRunInEveryOrder) {
  std::vector<float> results;
  for (const EmulatorOptions& options : EveryOrder()) {
    const ScopedEmulatorOptions scoped(options);
    results.push_back(RunOnce(floe_add_blocks, 0, {4, 1, 1}).out[0]);
  }
  EXPECT_EQ(results[0], ((0 * 3 + 1) * 3 + 2) * 3 + 3);
  EXPECT_EQ(results[1], ((3 * 3 + 2) * 3 + 1) * 3 + 0);
}

TEST(EmulatorTest, RefusesWhatNoGpuRuns) {
  EXPECT_THAT(std::string(RunOnce(floe_good, 0, {0, 1, 1}).status.message()),
              HasSubstr("no GPU runs a grid of 0 x 1 x 1 blocks"));
  EXPECT_FALSE(RunOnce(floe_good, 0, {1, 65536, 1}).status.ok());
}

TEST(EmulatorTest, KeepsDenormals) {
  const KernelEntry entry = {"denormal", reinterpret_cast<const void*>(&floe_denormal), kThreads,
                             static_cast<int>(sizeof(TestArgs))};
  std::vector<float> in(kThreads, 2e-45f), out(kThreads);
  in[0] = 1.17549435e-38f;
  const TestArgs args = {in.data(), out.data(), 0};
  const ScopedFlushDenormals flush;
  ASSERT_TRUE(Emulate(entry, {}, &args).ok());
  EXPECT_EQ(BitsOfFloat(out[0]), 0x00400000u);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSeesOverruns = true;
#elif defined(__has_feature)
constexpr bool kSeesOverruns = __has_feature(address_sanitizer);
#else
constexpr bool kSeesOverruns = false;
#endif

TEST(EmulatorDeathTest, FindsAccessBeyondGlobalMemory) {
  if (!kSeesOverruns) GTEST_SKIP() << "needs AddressSanitizer";
  EXPECT_DEATH(RunOnce(floe_beyond_global, 0, {2, 1, 1}).status.IgnoreError(),
               "heap-buffer-overflow");
}
TEST(EmulatorDeathTest, FindsAccessBeyondSharedMemory) {
  if (!kSeesOverruns) GTEST_SKIP() << "needs AddressSanitizer";
  EXPECT_DEATH(RunOnce(floe_beyond_shared).status.IgnoreError(), "heap-buffer-overflow");
}

}  // namespace
}  // namespace floe::cuda
