// Convolutions as products with patches of an image, which are never written out.
#pragma once

#include "kernels/cuda/gemm.cuh"

namespace floe::cuda {

// The output pixels from m0 on: where their patches begin in the input, and where they are in the
// output. In shared memory, as no thread could keep its rows in registers.
template <class Tile>
struct PatchRows {
  const ConvArgs& args;
  const float* x;  // of the group
  int k;
  // For each row of the tile: the patch's first element, its place in the image, and the output's
  // offset; the first dim's place is far outside for rows that are none.
  int64_t* begin;
  int64_t* out;
  int* place;  // [3][kM]
  // Of the first element of a patch that this thread copies next.
  int channel, tap[3];

  GPU_DEVICE void FindRows(int m0) {
    for (int i = static_cast<int>(threadIdx.x); i < Tile::kM; i += Tile::kThreads) {
      int left = m0 + i, at[3];
      GPU_UNROLL
      for (int d = 2; d >= 0; --d) {
        at[d] = left % args.out[d];
        left /= args.out[d];
      }
      const bool none = left >= args.images;
      int64_t pixel = 0;
      int64_t to = left * args.y_image;
      GPU_UNROLL
      for (int d = 0; d < 3; ++d) {
        const int first = at[d] * args.stride[d] - args.low[d];
        pixel = pixel * args.in[d] + first;
        to += at[d] * args.y_step[d];
        place[d * Tile::kM + i] = first;
      }
      if (none) place[i] = -(1 << 30);
      begin[i] = left * args.x_image + pixel * args.x_pixel;
      out[i] = none ? -1 : to;
    }
    const int t = static_cast<int>(threadIdx.x);
    channel = args.x_vectors ? t % (Tile::kDepth / 4) * 4 : t % Tile::kDepth;
    tap[0] = tap[1] = tap[2] = 0;
    Settle();
    __syncthreads();
  }
  // Moves from channels that there are not to the taps after this one.
  GPU_DEVICE void Settle() {
    while (channel >= args.channels) {
      channel -= args.channels;
      if (++tap[2] < args.taps[2]) continue;
      tap[2] = 0;
      if (++tap[1] < args.taps[1]) continue;
      tap[1] = 0;
      ++tap[0];
    }
  }

  GPU_DEVICE int64_t OutAt(int i) const { return out[i]; }
  GPU_DEVICE void LoadPiece(int k0, float* to) {
    int shift[3];
    int64_t pixel = 0;
    GPU_UNROLL
    for (int d = 0; d < 3; ++d) {
      shift[d] = tap[d] * args.dilation[d];
      pixel = pixel * args.in[d] + shift[d];
    }
    const float* const from = x + pixel * args.x_pixel + channel;
    const auto inside = [&](int row, int kk) {
      bool valid = k0 + kk < k;
      GPU_UNROLL
      for (int d = 0; d < 3; ++d) {
        valid = valid && static_cast<uint32_t>(place[d * Tile::kM + row] + shift[d]) <
                             static_cast<uint32_t>(args.in[d]);
      }
      return valid;
    };
    if (args.x_vectors) {
      LoadLeft<Tile, 4>(to, [&](int row, int kk, float* at) {
        const bool valid = inside(row, kk);
        CopyAsync16(at, valid ? from + begin[row] : args.x, valid);
      });
    } else {
      LoadLeft<Tile, 1>(to, [&](int row, int kk, float* at) {
        const bool valid = inside(row, kk);
        CopyAsync4(at, valid ? from + begin[row] : args.x, valid);
      });
    }
    channel += Tile::kDepth;
    Settle();
  }
};

template <class Tile>
GPU_DEVICE void Conv(const ConvArgs& args) {
  GPU_SHARED(float, a, Tile::kStages* Tile::kPieceA);
  GPU_SHARED(float, b, Tile::kStages* Tile::kPieceB);
  GPU_SHARED(int64_t, begin, Tile::kM);
  GPU_SHARED(int64_t, out, Tile::kM);
  GPU_SHARED(int, place, 3 * Tile::kM);
  const int group = static_cast<int>(blockIdx.z), n0 = static_cast<int>(blockIdx.y) * Tile::kN;
  const int k = args.taps[0] * args.taps[1] * args.taps[2] * args.channels;
  const int first = group * args.outputs;
  PatchRows<Tile> left = {args, args.x + group * args.channels, k, begin, out, place, 0, {}};
  left.FindRows(static_cast<int>(blockIdx.x) * Tile::kM);
  FactorArgs right = args.weights;
  right.at += first;
  right.readable -= first;
  Sums<Tile> sums;
  MultiplyTile<Tile>(left, right, k, n0, args.outputs, a, b, &sums);
  EpilogueArgs epilogue = args.epilogue;
  if (epilogue.bias != nullptr) epilogue.bias += first;
  if (epilogue.residual != nullptr) epilogue.residual += first;
  FinishTile<Tile>(left, sums, args.y + first, n0, args.outputs, args.y_vectors, epilogue);
}

GPU_KERNEL(conv_128x128, ConvArgs, Tile128::kThreads) { Conv<Tile128>(args); }
GPU_KERNEL(conv_64x64, ConvArgs, Tile64::kThreads) { Conv<Tile64>(args); }
GPU_KERNEL(conv_32x32, ConvArgs, Tile32::kThreads) { Conv<Tile32>(args); }
GPU_KERNEL(conv_tf32, ConvArgs, 128) { Conv<TensorTile<Math::kTf32>>(args); }
GPU_KERNEL(conv_bf16, ConvArgs, 128) { Conv<TensorTile<Math::kBf16>>(args); }

// The sums of four channels of an output pixel, or of one.
struct FourSums {
  static constexpr int kChannels = 4;
  float at[4] = {};
  GPU_DEVICE void Add(const float* x, const float* weights) {
    const float4 f = *reinterpret_cast<const float4*>(x);
    const float4 w = *reinterpret_cast<const float4*>(weights);
    at[0] = Fma(f.x, w.x, at[0]);
    at[1] = Fma(f.y, w.y, at[1]);
    at[2] = Fma(f.z, w.z, at[2]);
    at[3] = Fma(f.w, w.w, at[3]);
  }
};
struct OneSum {
  static constexpr int kChannels = 1;
  float at[1] = {};
  GPU_DEVICE void Add(const float* x, const float* weights) { at[0] = Fma(*x, *weights, at[0]); }
};

template <class Sum>
GPU_DEVICE void Depthwise(const DepthwiseArgs& args) {
  const int outputs = args.channels * args.multiplier, parts = outputs / Sum::kChannels;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= args.pixels * parts) return;
  const int column = static_cast<int>(i % parts) * Sum::kChannels;
  const int64_t pixel = i / parts, image = pixel / (args.out[0] * args.out[1]);
  const int inside = static_cast<int>(pixel % (args.out[0] * args.out[1]));
  const int y0 = inside / args.out[1] * args.stride[0] - args.low[0];
  const int x0 = inside % args.out[1] * args.stride[1] - args.low[1];
  const float* const x = args.x + image * args.x_image + column / args.multiplier;
  Sum sum;
  for (int ty = 0; ty < args.taps[0]; ++ty) {
    const int y = y0 + ty * args.dilation[0];
    if (y < 0 || y >= args.in[0]) continue;
    for (int tx = 0; tx < args.taps[1]; ++tx) {
      const int at = x0 + tx * args.dilation[1];
      if (at < 0 || at >= args.in[1]) continue;
      sum.Add(x + (static_cast<int64_t>(y) * args.in[1] + at) * args.x_pixel,
              args.weights + static_cast<int64_t>(ty * args.taps[1] + tx) * outputs + column);
    }
  }
  const int64_t to = pixel * args.y_pixel + column;
  GPU_UNROLL
  for (int e = 0; e < Sum::kChannels; ++e) {
    args.y[to + e] = FinishCheaply(sum.at[e] + 0.0f, args.epilogue, to + e, column + e);
  }
  if (IsCheap(args.epilogue.activation)) return;
  GPU_NO_UNROLL
  for (int64_t at = to; at < to + Sum::kChannels; ++at) {
    args.y[at] = Activate(args.y[at], args.epilogue.activation, args.epilogue.alpha);
  }
}

GPU_KERNEL(depthwise, DepthwiseArgs, 256) {
  if (args.vectors) {
    Depthwise<FourSums>(args);
  } else {
    Depthwise<OneSum>(args);
  }
}

}  // namespace floe::cuda
