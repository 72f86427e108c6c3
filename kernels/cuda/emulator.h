// CUDA's execution model on one host thread, for kernels that are written with gpu.h: a fiber for
// each thread of a block. What a GPU leaves undefined shows: a barrier that not all threads reach
// is an error, unwritten shared memory is NaN, accesses beyond an array are AddressSanitizer's,
// and where there is a race the bits follow EmulatorOrder. Denormals are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cuda/dim3.h"

namespace floe::cuda {

struct KernelEntry;

// Of threads within a block and of blocks. Warps go on one after the other between barriers of the
// block, or all of them together (kShuffled). Asynchronous copies are made when they are waited
// for, at once, and either way.
enum class EmulatorOrder : uint8_t { kForward, kBackward, kShuffled };
struct EmulatorOptions {
  EmulatorOrder order = EmulatorOrder::kForward;
  uint64_t seed = 1;  // of kShuffled
};

// Runs a kernel to its end, on the calling thread. `args` has the kernel's args_bytes. INTERNAL
// names the kernel and says what was wrong with it. Kernels of several host threads may run at
// once.
absl::Status Emulate(const KernelEntry& kernel, Dim3 grid, const void* args);

// How the calling thread's kernels run from now on; at first by FLOE_EMULATOR_ORDER, which is
// "forward", "backward" or "shuffled:SEED".
void SetEmulatorOptions(const EmulatorOptions& options);
EmulatorOptions GetEmulatorOptions();

// ---- For gpu.h ----

// Whether this CPU has an instruction for Fma.
bool HasFma();

// The array of the running block that belongs to the site, the same for all of its threads.
void* SharedArray(const void* site, size_t bytes);
void EmulateCopy(void* to, const void* from, bool valid, int bytes);
void EmulateCommit();
void EmulateWait(int groups);

// Where a thread waits, for messages: file and line of the kernel.
struct CodePlace {
  const char* file;
  int line;
};
void SyncBlock(CodePlace place);
// See Mma in gpu.h.
void EmulateMma(bool bf16, const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4],
                CodePlace place = {__builtin_FILE(), __builtin_LINE()});
// Gives `mine` to the warp, and returns what lane `source` gave.
uint64_t ExchangeInWarp(uint32_t mask, uint64_t mine, int source, CodePlace place);

template <class T>
T ShuffleInWarp(uint32_t mask, T value, int source, CodePlace place) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = ExchangeInWarp(mask, bits, source, place);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace floe::cuda

extern constinit thread_local floe::cuda::Dim3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

#define FLOE_CUDA_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
inline void __syncthreads(FLOE_CUDA_PLACE) { floe::cuda::SyncBlock({file, line}); }
inline void __syncwarp(uint32_t mask = 0xffffffffu, FLOE_CUDA_PLACE) {
  floe::cuda::ExchangeInWarp(mask, 0, static_cast<int>(threadIdx.x % 32), {file, line});
}
template <class T>
T __shfl_sync(uint32_t mask, T value, int lane, FLOE_CUDA_PLACE) {
  return floe::cuda::ShuffleInWarp(mask, value, lane & 31, {file, line});
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int lanes, FLOE_CUDA_PLACE) {
  return floe::cuda::ShuffleInWarp(mask, value, static_cast<int>(threadIdx.x % 32) ^ lanes,
                                   {file, line});
}
template <class T>
T __shfl_down_sync(uint32_t mask, T value, int by, FLOE_CUDA_PLACE) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  return floe::cuda::ShuffleInWarp(mask, value, lane + by < 32 ? lane + by : lane, {file, line});
}
// NOLINTEND(bugprone-reserved-identifier)

#undef FLOE_CUDA_PLACE
