#include "kernels/cuda/vendor_layer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace floe::cuda {
namespace {

void AddTerm(float a, float b, double* sum, double* magnitude) {
  const double term = static_cast<double>(a) * static_cast<double>(b);
  *sum += term;
  *magnitude += std::abs(term);
}

double PixelOf(const VendorLayer& layer, const float* x, const float* weights, int64_t at,
               double* magnitude) {
  const int64_t output = at % layer.outputs, pixel = at / layer.outputs;
  const int64_t row = pixel / layer.out[1], column = pixel % layer.out[1];
  const int64_t of_group = layer.channels / layer.groups,
                first = output / (layer.outputs / layer.groups) * of_group;
  double sum = 0;
  for (int64_t i = 0; i < layer.taps[0]; ++i) {
    const int64_t y = row * layer.stride[0] - layer.low[0] + i * layer.dilation[0];
    if (y < 0 || y >= layer.in[0]) continue;
    for (int64_t j = 0; j < layer.taps[1]; ++j) {
      const int64_t z = column * layer.stride[1] - layer.low[1] + j * layer.dilation[1];
      if (z < 0 || z >= layer.in[1]) continue;
      const float* const from = x + (y * layer.in[1] + z) * layer.channels + first;
      const float* const tap =
          weights + ((output * layer.taps[0] + i) * layer.taps[1] + j) * of_group;
      for (int64_t c = 0; c < of_group; ++c) AddTerm(from[c], tap[c], &sum, magnitude);
    }
  }
  return sum;
}

}  // namespace

int64_t VendorLayer::Alignment() const {
  const bool vectors = XRow() % 4 == 0 && YRow() % 4 == 0;
  return static_cast<int64_t>(vectors ? 4 * sizeof(float) : sizeof(float));
}

std::string VendorLayer::Key() const {
  if (is_product()) return absl::StrCat("product ", k, "x", n, " in lines of ", line);
  return absl::StrCat("convolution ", absl::StrJoin(in, "x"), "x", channels, " to ",
                      absl::StrJoin(out, "x"), "x", outputs, " by ", absl::StrJoin(taps, "x"),
                      " stride ", absl::StrJoin(stride, "x"), " dilation ",
                      absl::StrJoin(dilation, "x"), " pad ", absl::StrJoin(low, "x"),
                      uneven ? " uneven" : "", " groups ", groups);
}

double VendorLayer::Element(const float* x, const float* weights, int64_t at,
                            double* magnitude) const {
  *magnitude = 0;
  if (!is_product()) return PixelOf(*this, x, weights, at, magnitude);
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) AddTerm(x[i], weights[i * line + at], &sum, magnitude);
  return sum;
}

}  // namespace floe::cuda
