// Of matrix products and of convolutions, which are products with patches of an image.
#pragma once

#include <cstdint>

#include "model/epilogue.h"

namespace floe::cuda {

// Applied to a sum in this order: + bias, + residual, activation.
struct EpilogueArgs {
  const float* bias;      // one for each column, or null
  const float* residual;  // laid out as the output, or null
  Activation activation;
  float alpha;  // LeakyRelu's slope
};

// The right factor, [k, columns].
struct FactorArgs {
  const float* at;
  int64_t row, column;  // elements from one to the next
  // Whether 16 bytes may be read at every fourth column below `readable`: `column` is 1, `row` and
  // all offsets are multiples of 4, and `at` is aligned to 16 bytes.
  bool vectors;
  int32_t readable;
};

inline constexpr int kMaxBatchDims = 4;

// c[m, n] = epilogue(sum over k, ascending, of a[m, k] b[k, n]). blockIdx: tiles of m, tiles of n,
// products from the first on. Product z is that of a and b at the offsets of z as an index of
// `batch`.
struct GemmArgs {
  const float* a;
  int64_t a_row, a_column;
  bool a_vectors;  // as b.vectors, for every fourth element of a row; k is a multiple of 4
  FactorArgs b;
  float* c;
  int64_t c_row;
  int32_t m, n, k;
  int32_t batch[kMaxBatchDims];  // the first counts slowest
  int64_t a_batch[kMaxBatchDims], b_batch[kMaxBatchDims];
  int64_t c_batch;        // from one product to the next
  int64_t first_product;  // of this launch
  bool c_vectors;         // as b.vectors, for 16 bytes of c, bias and residual
  EpilogueArgs epilogue;
};

// y = epilogue(convolution of x, channels last, with the factor [taps and channels, outputs]).
// blockIdx: tiles of output pixels, tiles of a group's outputs, groups. Output pixel o reads input
// pixels o * stride - low + tap * dilation.
struct ConvArgs {
  const float* x;
  int64_t x_image, x_pixel;  // elements from one to the next
  bool x_vectors;            // 16 bytes at every fourth channel of a group: all are multiples of 4
  FactorArgs weights;        // of all groups, beside each other
  float* y;
  int64_t y_image, y_step[3];  // elements from one image, and along each dim from one pixel, on
  int32_t images;
  int32_t in[3], out[3], taps[3], stride[3], dilation[3], low[3];
  int32_t channels, outputs;  // of a group
  bool y_vectors;
  EpilogueArgs epilogue;
};

// As a ConvArgs, but each output channel reads the input channel `multiplier` to one.
struct DepthwiseArgs {
  const float* x;
  int64_t x_image, x_pixel;
  const float* weights;  // [taps, channels * multiplier]
  float* y;
  int64_t y_pixel;
  int64_t pixels;  // of all images
  int32_t in[2], out[2], taps[2], stride[2], dilation[2], low[2];
  int32_t channels, multiplier;
  bool vectors;  // four channels at once: all offsets are multiples of 4, all aligned to 16 bytes
  EpilogueArgs epilogue;
};

}  // namespace floe::cuda
