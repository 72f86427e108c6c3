// Reductions. The tree of an output follows from the number of elements that it folds, and from
// nothing else.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/index.cuh"
#include "kernels/cuda/reduce_args.h"

namespace floe::cuda {

inline constexpr uint32_t kWholeWarp = 0xffffffffu;

// What changes no result of a fold: adding -0 does not, adding +0 makes +0 of -0.
GPU_DEVICE float FoldStart(Fold fold) {
  switch (fold) {
    case Fold::kProduct:
      return 1.0f;
    case Fold::kMaximum:
      return FloatOfBits(0xff800000u);
    case Fold::kMinimum:
      return FloatOfBits(0x7f800000u);
    default:
      return -0.0f;
  }
}
GPU_DEVICE float FoldTwo(Fold fold, float a, float x) {
  switch (fold) {
    case Fold::kProduct:
      return a * x;
    case Fold::kMaximum:
      return x >= a || x != x ? x : a;
    case Fold::kMinimum:
      return x <= a || x != x ? x : a;
    default:
      return a + x;
  }
}
GPU_DEVICE float FoldOne(Fold fold, float a, float x) {
  return fold == Fold::kNorm ? Fma(x, x, a) : FoldTwo(fold, a, x);
}
// As TensorFlow's, a sum of one element is the element, and one of several zeros is +0.
GPU_DEVICE float FoldEnd(Fold fold, float a, int64_t folded) {
  if ((fold == Fold::kSum || fold == Fold::kMean) && folded > 1) a += 0.0f;
  if (fold == Fold::kMean) return Div(a, static_cast<float>(folded));
  return fold == Fold::kNorm ? Sqrt(a) : a;
}

// All lanes get the result.
GPU_DEVICE float FoldWarp(Fold fold, float a) {
  GPU_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2)
    a = FoldTwo(fold, a, __shfl_xor_sync(kWholeWarp, a, lanes));
  return a;
}

// Of a block of kReduceThreads; `shared` has a place for each warp, and may be used again at once.
GPU_DEVICE float FoldBlock(Fold fold, float a, float* shared) {
  a = FoldWarp(fold, a);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = a;
  __syncthreads();
  a = shared[0];
  GPU_UNROLL
  for (int w = 1; w < kReduceThreads / 32; ++w) a = FoldTwo(fold, a, shared[w]);
  __syncthreads();
  return a;
}

// Where the fold of output `i` begins.
GPU_DEVICE int64_t KeptPlace(const ReduceArgs& args, int64_t i) {
  int64_t at = 0;
  for (int d = args.kept_dims - 1; d >= 0; --d) {
    int64_t index = 0;
    i = Divide(i, args.kept[d], &index);
    at += index * args.kept_stride[d];
  }
  return at;
}
GPU_DEVICE int64_t ReducedPlace(const ReduceArgs& args, int64_t i) {
  if (args.reduced_dims == 1) return i * args.reduced_stride[0];
  int64_t at = 0;
  for (int d = args.reduced_dims - 1; d >= 0; --d) {
    int64_t index = 0;
    i = Divide(i, args.reduced[d], &index);
    at += index * args.reduced_stride[d];
  }
  return at;
}

// One thread an output, where neighbouring outputs lie side by side in the input.
GPU_KERNEL(reduce_lines, ReduceArgs, kReduceThreads) {
  const int64_t i = ElementOf<kReduceThreads, 1>(0);
  if (i >= args.outputs) return;
  const float* const x = static_cast<const float*>(args.in) + KeptPlace(args, i);
  float total = FoldStart(args.fold);
  for (int64_t k = 0; k < args.folded; ++k)
    total = FoldOne(args.fold, total, x[ReducedPlace(args, k)]);
  static_cast<float*>(args.out)[i] = FoldEnd(args.fold, total, args.folded);
}

// One warp an output.
GPU_KERNEL(reduce_warp, ReduceArgs, kReduceThreads) {
  const int64_t i = RowOfWarp<kReduceThreads>();
  if (i >= args.outputs) return;
  const float* const x = static_cast<const float*>(args.in) + KeptPlace(args, i);
  float total = FoldStart(args.fold);
  for (int64_t k = threadIdx.x % 32; k < args.folded; k += 32)
    total = FoldOne(args.fold, total, x[ReducedPlace(args, k)]);
  total = FoldWarp(args.fold, total);
  if (threadIdx.x % 32 == 0)
    static_cast<float*>(args.out)[i] = FoldEnd(args.fold, total, args.folded);
}

// One block an output.
GPU_KERNEL(reduce_block, ReduceArgs, kReduceThreads) {
  GPU_SHARED(float, shared, kReduceThreads / 32);
  const float* const x = static_cast<const float*>(args.in) + KeptPlace(args, blockIdx.x);
  float total = FoldStart(args.fold);
  for (int64_t k = threadIdx.x; k < args.folded; k += kReduceThreads)
    total = FoldOne(args.fold, total, x[ReducedPlace(args, k)]);
  total = FoldBlock(args.fold, total, shared);
  if (threadIdx.x == 0)
    static_cast<float*>(args.out)[blockIdx.x] = FoldEnd(args.fold, total, args.folded);
}

// Integers and bools, one thread an output: modulo the width of their type, as the CPU's.
GPU_KERNEL(reduce_integers, ReduceArgs, kReduceThreads) {
  const int64_t i = ElementOf<kReduceThreads, 1>(0);
  if (i >= args.outputs) return;
  const int64_t begin = KeptPlace(args, i);
  uint64_t total = args.fold == Fold::kProduct || args.fold == Fold::kAll ? 1 : 0;
  for (int64_t k = 0; k < args.folded; ++k) {
    const int64_t x = LoadWord(args.in, args.type, begin + ReducedPlace(args, k));
    const auto so_far = static_cast<int64_t>(total);
    switch (args.fold) {
      case Fold::kProduct:
        total *= static_cast<uint64_t>(x);
        break;
      case Fold::kMaximum:
        total = static_cast<uint64_t>(k == 0 || x > so_far ? x : so_far);
        break;
      case Fold::kMinimum:
        total = static_cast<uint64_t>(k == 0 || x < so_far ? x : so_far);
        break;
      case Fold::kAll:
        total &= static_cast<uint64_t>(x);
        break;
      case Fold::kAny:
        total |= static_cast<uint64_t>(x);
        break;
      default:
        total += static_cast<uint64_t>(x);
    }
  }
  auto result = static_cast<int64_t>(total);
  if (args.fold == Fold::kMean) result /= args.folded;
  StoreWord(args.out, args.type, i, result);
}

// Begins at place 0 with a finite bound, so that NaN is never chosen. `first` of equal ones.
struct Best {
  float value;
  int64_t place;
};
GPU_DEVICE Best BetterOf(const Best& a, const Best& b, bool smallest) {
  if (smallest ? b.value < a.value : b.value > a.value) return b;
  return b.value == a.value && b.place < a.place ? b : a;
}

// One warp an output, elements side by side.
GPU_KERNEL(argmax_warp, ArgMaxArgs, kReduceThreads) {
  const int64_t i = RowOfWarp<kReduceThreads>();
  if (i >= args.outputs) return;
  const bool smallest = args.smallest != 0;
  const float* const x = static_cast<const float*>(args.in) + i * args.along;
  const float bound = FloatOfBits(smallest ? 0x7f7fffffu : 0xff7fffffu);
  Best best{bound, 0};
  for (int64_t k = threadIdx.x % 32; k < args.along; k += 32) {
    if (smallest ? x[k] < best.value : x[k] > best.value) best = {x[k], k};
  }
  GPU_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const Best other{__shfl_xor_sync(kWholeWarp, best.value, lanes),
                     __shfl_xor_sync(kWholeWarp, best.place, lanes)};
    best = BetterOf(best, other, smallest);
  }
  if (threadIdx.x % 32 == 0) StoreWord(args.out, args.out_type, i, best.place);
}

// One thread an output.
GPU_KERNEL(argmax_lines, ArgMaxArgs, kReduceThreads) {
  const int64_t i = ElementOf<kReduceThreads, 1>(0);
  if (i >= args.outputs) return;
  const bool smallest = args.smallest != 0, is_float = args.type == Element::kFloat;
  int64_t inner = 0, place = 0, most = 0;
  const int64_t outer = Divide(i, args.inner, &inner);
  const int64_t begin = outer * args.along * args.inner.divisor + inner;
  float top = FloatOfBits(smallest ? 0x7f7fffffu : 0xff7fffffu);
  for (int64_t k = 0; k < args.along; ++k) {
    const int64_t word = LoadWord(args.in, args.type, begin + k * args.inner.divisor);
    const float x = FloatOfBits(static_cast<uint32_t>(word));
    const bool better = is_float ? (smallest ? x < top : x > top)
                                 : k == 0 || (smallest ? word < most : word > most);
    if (!better) continue;
    place = k;
    top = x;
    most = word;
  }
  StoreWord(args.out, args.out_type, i, place);
}

}  // namespace floe::cuda
