// Long convolutions along one dim, with their answers in float64, for tests of their transforms on
// every device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu/gemm/activation.h"
#include "kernels/cpu/kernel_test_util.h"
#include "model/epilogue.h"

namespace floe {

struct LongConv {
  int64_t images, length, channels, taps, columns;
  int64_t stride = 1, dilation = 1;
  std::string padding = "VALID";  // EXPLICIT: causal
  Activation activation = Activation::kNone;
  bool along_h = false;
  bool bias = true;
};

inline Attrs AttrsOf(const LongConv& t) {
  const auto dims = [&](int64_t n) {
    return t.along_h ? std::vector<int64_t>{1, n, 1, 1} : std::vector<int64_t>{1, 1, n, 1};
  };
  Attrs attrs;
  attrs.Set("strides", dims(t.stride));
  attrs.Set("dilations", dims(t.dilation));
  attrs.Set("padding", t.padding);
  attrs.Set("data_format", std::string("NHWC"));
  SetEpilogue({.activation = t.activation, .bias = t.bias ? 2 : -1}, &attrs);
  const int64_t before = (t.taps - 1) * t.dilation;
  if (t.padding == "EXPLICIT") {
    attrs.Set("explicit_paddings", t.along_h ? std::vector<int64_t>{0, 0, before, 0, 0, 0, 0, 0}
                                             : std::vector<int64_t>{0, 0, 0, 0, before, 0, 0, 0});
  }
  return attrs;
}

inline std::vector<Tensor> InputsOf(const LongConv& t) {
  std::vector<Tensor> inputs = {RandomTensor(t.along_h ? Shape{t.images, t.length, 1, t.channels}
                                                       : Shape{t.images, 1, t.length, t.channels},
                                             1),
                                RandomTensor(t.along_h ? Shape{t.taps, 1, t.channels, t.columns}
                                                       : Shape{1, t.taps, t.channels, t.columns},
                                             2)};
  if (t.bias) inputs.push_back(RandomTensor({t.columns}, 3));
  return inputs;
}

// No error against float64 above that of sums of so many numbers below 1.
inline void ExpectNear(const LongConv& t, const std::vector<Tensor>& inputs, const Tensor& got) {
  const int64_t span = (t.taps - 1) * t.dilation + 1;
  int64_t out = (t.length - span) / t.stride + 1, before = 0;
  if (t.padding == "SAME") {
    out = (t.length + t.stride - 1) / t.stride;
    before = std::max<int64_t>((out - 1) * t.stride + span - t.length, 0) / 2;
  } else if (t.padding == "EXPLICIT") {
    before = span - 1;
    out = (t.length - 1) / t.stride + 1;
  }
  ASSERT_EQ(got.elements(), t.images * out * t.columns);
  const Epilogue epilogue{.activation = t.activation};
  const float *x = inputs[0].as<float>(), *w = inputs[1].as<float>();
  for (int64_t i = 0; i < t.images * out; ++i) {
    const float* image = x + i / out * t.length * t.channels;
    for (int64_t column = 0; column < t.columns; ++column) {
      double sum = t.bias ? inputs[2].as<float>()[column] : 0;
      for (int64_t tap = 0; tap < t.taps; ++tap) {
        const int64_t at = i % out * t.stride + tap * t.dilation - before;
        if (at < 0 || at >= t.length) continue;
        for (int64_t c = 0; c < t.channels; ++c)
          sum += static_cast<double>(image[at * t.channels + c]) *
                 w[(tap * t.channels + c) * t.columns + column];
      }
      const double tolerance = 1e-6 * std::sqrt(static_cast<double>(t.taps * t.channels)) + 1e-6;
      ASSERT_NEAR(got.as<float>()[i * t.columns + column], kernels::ActivatePlain(epilogue, sum),
                  tolerance)
          << "row " << i % out << " of image " << i / out << ", column " << column;
    }
  }
}

}  // namespace floe
