// Convolutions along one dim by overlap-save Fourier transforms: the tiles are judged and
// transformed, their spectra multiplied by the kernels of matrix products, and transformed back.
//
// A transform of first * second points has two passes, in which every sum is one thread's and in
// ascending order. The lanes of a warp are neighbouring channels. Nothing of a tile depends on
// another tile.
#pragma once

#include "kernels/cuda/activation.cuh"
#include "kernels/cuda/fft_args.h"

namespace floe::cuda {

struct FftTile {
  int64_t image;  // first float
  int64_t begin;  // float of the image where row 0 begins; may be before it
  int64_t step;   // floats from row to row
  int64_t out;    // row of y, over all images
  int count;      // rows of the result; none: <= 0
};

GPU_DEVICE FftTile FftTileAt(const FftArgs& args, int64_t i) {
  const int64_t of_image = int64_t{args.sequences} * args.tiles_of_sequence;
  const int64_t image = i / of_image, inside = i % of_image;
  const int64_t sequence = inside / args.tiles_of_sequence;
  const int64_t first = inside % args.tiles_of_sequence * args.tile;  // of its sequence
  const int64_t of_sequence = (args.out - sequence + args.dilation - 1) / args.dilation;
  const int64_t out = sequence + first * args.dilation;
  FftTile tile;
  tile.image = image * args.image;
  tile.begin = (out * args.stride - args.pad) * args.channels;
  tile.step = args.dilation > 1 ? int64_t{args.dilation} * args.channels : args.width;
  tile.out = image * args.out + out;
  const int64_t left = of_sequence - first;
  tile.count = static_cast<int>(left < args.tile ? left : args.tile);
  return tile;
}

// Float c of row n; zero where the image has none.
GPU_DEVICE float FftInput(const FftArgs& args, const FftTile& tile, int n, int c) {
  const int64_t at = tile.begin + n * tile.step + c;
  return at >= 0 && at < args.image ? args.x[tile.image + at] : 0.0f;
}

// Float c of row n of a spectrum's plane `p`.
GPU_DEVICE int64_t FftAt(const FftArgs& args, int p, int row, int line) {
  return (static_cast<int64_t>(p) * args.together + row) * line;
}

// blockIdx.x: tiles.
GPU_KERNEL(fft_judge, FftArgs, kFftThreads) {
  GPU_SHARED(uint32_t, of_row, kMostFftPoints);
  GPU_SHARED(uint32_t, largest, 1);
  GPU_SHARED(uint32_t, too_small, kMostFftPoints);
  const int t = static_cast<int>(threadIdx.x), warp = t / 32, lane = t % 32;
  const int row = static_cast<int>(blockIdx.x);
  const FftTile tile = FftTileAt(args, args.first_tile + row);
  for (int n = warp; n < args.points; n += kFftThreads / 32) {
    uint32_t most = 0;
    for (int c = lane; c < args.width; c += 32) {
      const uint32_t bits = BitsOfFloat(FftInput(args, tile, n, c)) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
    GPU_UNROLL
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      const uint32_t other = __shfl_xor_sync(0xffffffffu, most, lanes);
      most = other > most ? other : most;
    }
    if (lane == 0) of_row[n] = most;
  }
  __syncthreads();
  if (t == 0) {
    uint32_t most = 0;
    for (int n = 0; n < args.points; ++n) most = of_row[n] > most ? of_row[n] : most;
    largest[0] = most;
  }
  __syncthreads();
  const uint32_t least = BitsOfFloat(Div(FloatOfBits(largest[0]), args.range));
  if (t < tile.count) {
    uint32_t most = 0;
    for (int n = t; n < t + args.taps; ++n) most = of_row[n] > most ? of_row[n] : most;
    args.most[static_cast<int64_t>(row) * args.points + t] = most;
    too_small[t] = most != 0 && most < least ? 1 : 0;
  }
  __syncthreads();
  if (t != 0) return;
  bool direct = largest[0] != 0 && (largest[0] > args.high || largest[0] < args.low);
  for (int n = 0; n < tile.count; ++n) direct = direct || too_small[n] != 0;
  args.kinds[row] =
      static_cast<uint32_t>(direct ? FftTileKind::kDirect : FftTileKind::kTransformed);
}

struct FftNumber {
  float re, im;
};

// The factors of all points, in shared memory.
GPU_DEVICE void LoadFftFactors(const FftArgs& args, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < 2 * args.points; i += kFftThreads) {
    to[i] = args.cosines[i];
  }
}

// Z[k][n2] = sum over n1 of x[n1 * second + n2] exp(-2 pi i n1 k / first), for k to first / 2.
GPU_DEVICE void FftFirstPass(const FftArgs& args, const FftTile& tile, int channel,
                             const float* factors, float* z) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int n2 = warp; n2 < args.second; n2 += kFftThreads / 32) {
    FftNumber sums[kMostFftFirst / 2 + 1];
    GPU_UNROLL
    for (int k = 0; k <= kMostFftFirst / 2; ++k) sums[k] = {0, 0};
    GPU_NO_UNROLL
    for (int n1 = 0; n1 < args.first; ++n1) {
      const float x =
          channel < args.width ? FftInput(args, tile, n1 * args.second + n2, channel) : 0.0f;
      int at = 0;  // n1 * k mod first
      GPU_UNROLL
      for (int k = 0; k <= kMostFftFirst / 2; ++k) {
        if (k <= args.first / 2) {
          const float* const factor = factors + 2 * at * args.second;
          sums[k].re = Fma(x, factor[0], sums[k].re);
          sums[k].im = Fma(-x, factor[1], sums[k].im);
        }
        at += n1;
        if (at >= args.first) at -= args.first;
      }
    }
    GPU_UNROLL
    for (int k = 0; k <= kMostFftFirst / 2; ++k) {
      if (k > args.first / 2) continue;
      float* const to = z + (k * args.second + n2) * 2 * kFftChannels + lane;
      to[0] = sums[k].re;
      to[kFftChannels] = sums[k].im;
    }
  }
}

// blockIdx: tiles, channels by 32.
GPU_KERNEL(fft_forward, FftArgs, kFftThreads) {
  GPU_SHARED(float, factors, 2 * kMostFftPoints);
  GPU_SHARED(float, z, (kMostFftFirst / 2 + 1) * kMostFftSecond * 2 * kFftChannels);
  const int row = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int channel = static_cast<int>(blockIdx.y) * kFftChannels + lane;
  const FftTile tile = FftTileAt(args, args.first_tile + row);
  LoadFftFactors(args, factors);
  __syncthreads();
  FftFirstPass(args, tile, channel, factors, z);
  __syncthreads();
  for (int k = warp; k <= args.points / 2; k += kFftThreads / 32) {
    // Z of first - k is the conjugate of that of k.
    int k1 = k % args.first;
    const float sign = k1 > args.first / 2 ? -1.0f : 1.0f;
    if (k1 > args.first / 2) k1 = args.first - k1;
    float re = 0, im = 0;
    int at = 0;  // n2 * k mod points
    for (int n2 = 0; n2 < args.second; ++n2) {
      const float* const from = z + (k1 * args.second + n2) * 2 * kFftChannels + lane;
      const float a = from[0], b = sign * from[kFftChannels];
      const float c = factors[2 * at], s = factors[2 * at + 1];
      re = Fma(b, s, Fma(a, c, re));
      im = Fma(-a, s, Fma(b, c, im));
      at += k;
      if (at >= args.points) at -= args.points;
    }
    if (channel >= args.width) continue;
    float* const to = args.data + channel;
    if (k == 0 || k == args.points / 2) {
      const int p = k == 0 ? 0 : 3 * (k - 1) + 1;
      to[FftAt(args, p, row, args.data_line)] = re;
      continue;
    }
    const int p = 3 * (k - 1) + 1;
    to[FftAt(args, p, row, args.data_line)] = re;
    to[FftAt(args, p + 1, row, args.data_line)] = im;
    to[FftAt(args, p + 2, row, args.data_line)] = re + im;
  }
}

// Frequency k of the products.
GPU_DEVICE FftNumber FftProduct(const FftArgs& args, int k, int row, int column) {
  const int half = args.points / 2;
  const int of = k > half ? args.points - k : k;
  const float* const from = args.products + column;
  const int p = of == 0 ? 0 : 3 * (of - 1) + 1;
  const float k1 = from[FftAt(args, p, row, args.product_line)];
  if (of == 0 || of == half) return {k1, 0};
  const float k2 = from[FftAt(args, p + 1, row, args.product_line)];
  const float k3 = from[FftAt(args, p + 2, row, args.product_line)];
  const float im = k3 + k1;
  return {k3 - k2, k > half ? -im : im};
}

// B[k][n2] = sum over k2 of X[k + first * k2] exp(2 pi i n2 k2 / second), for k to first / 2.
GPU_DEVICE void FftInversePass(const FftArgs& args, int row, int column, const float* factors,
                               float* b) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int k = warp; k <= args.first / 2; k += kFftThreads / 32) {
    FftNumber sums[kMostFftSecond];
    GPU_UNROLL
    for (int n2 = 0; n2 < kMostFftSecond; ++n2) sums[n2] = {0, 0};
    GPU_NO_UNROLL
    for (int k2 = 0; k2 < args.second; ++k2) {
      FftNumber x = {0, 0};
      if (column < args.columns) x = FftProduct(args, k + args.first * k2, row, column);
      int at = 0;  // n2 * k2 mod second
      GPU_UNROLL
      for (int n2 = 0; n2 < kMostFftSecond; ++n2) {
        if (n2 < args.second) {
          const float c = factors[2 * at * args.first], s = factors[2 * at * args.first + 1];
          sums[n2].re = Fma(-x.im, s, Fma(x.re, c, sums[n2].re));
          sums[n2].im = Fma(x.re, s, Fma(x.im, c, sums[n2].im));
        }
        at += k2;
        if (at >= args.second) at -= args.second;
      }
    }
    GPU_UNROLL
    for (int n2 = 0; n2 < kMostFftSecond; ++n2) {
      if (n2 >= args.second) continue;
      float* const to = b + (k * args.second + n2) * 2 * kFftChannels + lane;
      to[0] = sums[n2].re;
      to[kFftChannels] = sums[n2].im;
    }
  }
}

// Row n of the result: the real parts of B[k] exp(2 pi i n k / points), of which the k above
// first / 2 repeat those below.
GPU_DEVICE float FftResult(const FftArgs& args, int n, const float* factors, const float* b) {
  const int lane = static_cast<int>(threadIdx.x) % 32, n2 = n % args.second;
  float edge = 0, sum = 0;
  int at = 0;  // n * k mod points
  for (int k = 0; k <= args.first / 2; ++k) {
    const float* const from = b + (k * args.second + n2) * 2 * kFftChannels + lane;
    const float re = from[0], im = from[kFftChannels];
    const float c = factors[2 * at], s = factors[2 * at + 1];
    if (k == 0 || k == args.first / 2) {
      edge = Fma(-im, s, Fma(re, c, edge));
    } else {
      sum = Fma(-im, s, Fma(re, c, sum));
    }
    at += n;
    if (at >= args.points) at -= args.points;
  }
  return Fma(2.0f, sum, edge);
}

// Row n of the result without transforms.
GPU_DEVICE_CALL float FftDirectSum(const FftArgs& args, const FftTile& tile, int n, int column) {
  float sum = 0;
  int row = n, c = 0;
  for (int k = 0; k < args.direct_k; ++k) {
    sum = Fma(FftInput(args, tile, row, c),
              args.direct[static_cast<int64_t>(k) * args.direct_line + column], sum);
    if (++c == args.width) c = 0, ++row;
  }
  return sum;
}

// blockIdx: tiles, columns by 32.
GPU_KERNEL(fft_inverse, FftArgs, kFftThreads) {
  GPU_SHARED(float, factors, 2 * kMostFftPoints);
  GPU_SHARED(float, b, (kMostFftFirst / 2 + 1) * kMostFftSecond * 2 * kFftChannels);
  const int row = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int column = static_cast<int>(blockIdx.y) * kFftChannels + lane;
  const FftTile tile = FftTileAt(args, args.first_tile + row);
  const bool direct = args.kinds[row] == static_cast<uint32_t>(FftTileKind::kDirect);
  if (!direct) {  // the same for all threads
    LoadFftFactors(args, factors);
    __syncthreads();
    FftInversePass(args, row, column, factors, b);
    __syncthreads();
  }
  if (column >= args.columns) return;
  for (int n = warp; n < tile.count; n += kFftThreads / 32) {
    float sum = 0;  // exactly, over a window of zeros
    if (direct) {
      sum = FftDirectSum(args, tile, n, column);
    } else if (args.most[static_cast<int64_t>(row) * args.points + n] != 0) {
      sum = FftResult(args, n, factors, b);
    }
    const int64_t at = (tile.out + static_cast<int64_t>(n) * args.dilation) * args.columns + column;
    args.y[at] = Finish(sum + 0.0f, args.epilogue, at, column);
  }
}

}  // namespace floe::cuda
