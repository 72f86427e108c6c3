// What kernels are written with: CUDA C++ under nvcc, plain C++ over the emulator under g++ and
// clang. Kernels use CUDA's own names (threadIdx.x, __syncthreads) and those below. They have the
// same bits on both sides: contraction is off and denormals stay, so a fused multiply-add is where
// a kernel says Fma. Blocks have one axis of threads, a multiple of 32, and at most 48 KiB of
// shared memory.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#define GPU_DEVICE __device__ __forceinline__
// Not inlined: slow and rare, so that code that calls it often stays small. Not static: nvcc would
// put a hash of the source's folder into its name.
#define GPU_DEVICE_CALL inline __device__ __noinline__
// `count` elements that the threads of a block share.
#define GPU_SHARED(type, name, count) __shared__ alignas(16) type name[count]
// A kernel: `args` is its struct, passed by value. So few registers that two blocks of 256 threads
// fit a multiprocessor.
#define GPU_KERNEL(name, Args, threads)                                         \
  extern "C" __global__ void __launch_bounds__(threads, threads == 256 ? 2 : 1) \
      floe_##name(const __grid_constant__ Args args)
#define GPU_UNROLL _Pragma("unroll")
#define GPU_NO_UNROLL _Pragma("unroll 1")

#else

#include "kernels/cuda/emulator.h"

#define GPU_DEVICE inline
#define GPU_DEVICE_CALL [[maybe_unused]] __attribute__((noinline)) static
// By the address of a static object: what is shared once in CUDA is shared once here.
#define GPU_SHARED(type, name, count) \
  static char name##_site;            \
  type* const name =                  \
      static_cast<type*>(::floe::cuda::SharedArray(&name##_site, sizeof(type) * (count)))
// Compiled twice, everything inlined: without an instruction for it, Fma takes ten times as long.
#if defined(__x86_64__)
#define GPU_KERNEL(name, Args, threads)                                                     \
  __attribute__((always_inline)) static inline void floe_##name##_body(const Args& args);   \
  __attribute__((target("fma"), flatten)) static void floe_##name##_fma(const Args& args) { \
    floe_##name##_body(args);                                                               \
  }                                                                                         \
  __attribute__((flatten)) static void floe_##name##_plain(const Args& args) {              \
    floe_##name##_body(args);                                                               \
  }                                                                                         \
  extern "C" void floe_##name(const void* args) {                                           \
    (::floe::cuda::HasFma() ? floe_##name##_fma                                             \
                            : floe_##name##_plain)(*static_cast<const Args*>(args));        \
  }                                                                                         \
  void floe_##name##_body(const Args& args)
#else
#define GPU_KERNEL(name, Args, threads)                  \
  static void floe_##name##_body(const Args& args);      \
  extern "C" void floe_##name(const void* args) {        \
    floe_##name##_body(*static_cast<const Args*>(args)); \
  }                                                      \
  static void floe_##name##_body(const Args& args)
#endif
#define GPU_UNROLL
#define GPU_NO_UNROLL

#endif

namespace floe::cuda {

// a * b + c, rounded once.
GPU_DEVICE float Fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

GPU_DEVICE float FloatOfBits(uint32_t bits) {
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}
GPU_DEVICE uint32_t BitsOfFloat(float number) {
  uint32_t result;
  memcpy(&result, &number, sizeof result);
  return result;
}

// Starts a copy of 16 (4) bytes from global to shared memory, or of zeros where `valid` is false:
// `from` is not read then. Both aligned to 16 (4). The calling thread sees the bytes after
// WaitForCopies, others after a barrier behind that. sm_75 copies at once.
GPU_DEVICE void CopyAsync16(float* to, const float* from, bool valid) {
#if !defined(__CUDACC__)
  EmulateCopy(to, from, valid, 16);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  float4 value = make_float4(0, 0, 0, 0);
  if (valid) value = *reinterpret_cast<const float4*>(from);
  *reinterpret_cast<float4*>(to) = value;
#endif
}
GPU_DEVICE void CopyAsync4(float* to, const float* from, bool valid) {
#if !defined(__CUDACC__)
  EmulateCopy(to, from, valid, 4);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from),
               "r"(valid ? 4 : 0)
               : "memory");
#else
  *to = valid ? *from : 0.0f;
#endif
}
// Ends a group: what this thread has started since the last group.
GPU_DEVICE void CommitCopies() {
#if !defined(__CUDACC__)
  EmulateCommit();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most the last `kGroups` of this thread's groups are under way.
template <int kGroups>
GPU_DEVICE void WaitForCopies() {
#if !defined(__CUDACC__)
  EmulateWait(kGroups);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

// A number as the tensor cores take it: TF32 has 10 bits of a fraction, rounded to the nearest,
// away from 0 where two are; BF16 has 7, rounded to the nearest, to the even one where two are.
GPU_DEVICE uint32_t ToTf32(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
  return result;
#else
  const uint32_t bits = BitsOfFloat(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffffu;
  return (bits + 0x1000u) & 0xffffe000u;
#endif
}
GPU_DEVICE uint32_t ToBf16(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#else
  const auto half = [](float x) {
    const uint32_t bits = BitsOfFloat(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  };
  return half(low) | half(high) << 16;
#endif
}

// c += a b by the tensor cores, of all lanes of a warp together: mma.m16n8k8 of TF32, m16n8k16 of
// BF16, each lane with the elements that PTX gives it. From sm_80 on. The emulator adds in
// ascending k, rounding once each; a GPU adds in its own order, the same for every element.
template <bool kBf16>
GPU_DEVICE void Mma(const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4]) {
#if !defined(__CUDACC__)
  EmulateMma(kBf16, a, b, c);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#elif defined(__CUDA_ARCH__)
  __trap();  // no launch of these kernels is made there
#endif
}

}  // namespace floe::cuda
