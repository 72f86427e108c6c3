// Softmax, layer norm and batch norm.
#pragma once

#include "kernels/cuda/functions.cuh"
#include "kernels/cuda/index.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/reduce_args.h"

namespace floe::cuda {

// The threads that share a row: a warp of the block.
struct WarpGroup {
  static constexpr int kSize = 32;
  GPU_DEVICE int64_t row() const { return RowOfWarp<kReduceThreads>(); }
  GPU_DEVICE int rank() const { return static_cast<int>(threadIdx.x % 32); }
  GPU_DEVICE float Reduce(Fold fold, float a) const { return FoldWarp(fold, a); }
};
// All of it.
struct BlockGroup {
  static constexpr int kSize = kReduceThreads;
  float* shared;
  GPU_DEVICE int64_t row() const { return blockIdx.x; }
  GPU_DEVICE int rank() const { return static_cast<int>(threadIdx.x); }
  GPU_DEVICE float Reduce(Fold fold, float a) const { return FoldBlock(fold, a, shared); }
};

template <class Group>
GPU_DEVICE void Softmax(const SoftmaxArgs& args, const Group& group) {
  if (group.row() >= args.rows) return;  // all of the group
  const float* const x = args.x + group.row() * args.columns;
  float* const y = args.y + group.row() * args.columns;
  float top = FoldStart(Fold::kMaximum), sum = 0;
  for (int k = group.rank(); k < args.columns; k += Group::kSize)
    top = FoldTwo(Fold::kMaximum, top, x[k]);
  top = group.Reduce(Fold::kMaximum, top);
  if (args.log != 0) {
    for (int k = group.rank(); k < args.columns; k += Group::kSize) sum += Exp(x[k] - top);
    const float log = Log(group.Reduce(Fold::kSum, sum));
    for (int k = group.rank(); k < args.columns; k += Group::kSize) y[k] = x[k] - top - log;
    return;
  }
  // x may be y: a thread reads what it alone writes.
  for (int k = group.rank(); k < args.columns; k += Group::kSize) {
    const float power = Exp(x[k] - top);
    y[k] = power;
    sum += power;
  }
  sum = group.Reduce(Fold::kSum, sum);
  for (int k = group.rank(); k < args.columns; k += Group::kSize) y[k] = Div(y[k], sum);
}
GPU_KERNEL(softmax_warp, SoftmaxArgs, kReduceThreads) { Softmax(args, WarpGroup()); }
GPU_KERNEL(softmax_block, SoftmaxArgs, kReduceThreads) {
  GPU_SHARED(float, shared, kReduceThreads / 32);
  Softmax(args, BlockGroup{shared});
}

template <class Group>
GPU_DEVICE void LayerNorm(const LayerNormArgs& args, const Group& group) {
  if (group.row() >= args.rows) return;
  const float* const x = args.x + group.row() * args.columns;
  float* const y = args.y + group.row() * args.columns;
  const auto count = static_cast<float>(args.columns);
  float sum = 0, squares = 0;
  for (int k = group.rank(); k < args.columns; k += Group::kSize) sum += x[k];
  const float mean = Div(group.Reduce(Fold::kSum, sum), count);
  for (int k = group.rank(); k < args.columns; k += Group::kSize)
    squares = Fma(x[k] - mean, x[k] - mean, squares);
  const float variance = Div(group.Reduce(Fold::kSum, squares), count);
  const float factor = Div(1.0f, Sqrt(variance + args.epsilon));
  for (int k = group.rank(); k < args.columns; k += Group::kSize)
    y[k] = Fma((x[k] - mean) * factor, args.scale[k], args.offset[k]);
}
GPU_KERNEL(layer_norm_warp, LayerNormArgs, kReduceThreads) { LayerNorm(args, WarpGroup()); }
GPU_KERNEL(layer_norm_block, LayerNormArgs, kReduceThreads) {
  GPU_SHARED(float, shared, kReduceThreads / 32);
  LayerNorm(args, BlockGroup{shared});
}

GPU_KERNEL(batch_norm, BatchNormArgs, kReduceThreads) {
  const int64_t i = ElementOf<kReduceThreads, 1>(0);
  if (i >= args.elements) return;
  int64_t inner = 0, c = 0;
  Divide(Divide(i, args.inner, &inner), args.channels, &c);
  const float factor = Div(args.scale[c], Sqrt(args.variance[c] + args.epsilon));
  args.y[i] = (args.x[i] - args.mean[c]) * factor + args.offset[c];
}

}  // namespace floe::cuda
