// VendorLayer: a product or a convolution as libraries of NVIDIA compute it; VendorCall: one way in
// which one of them does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/library.h"

namespace floe::cuda {

// y = x * weights, in float32. Everything but the number of rows is fixed, and rows are
// independent: those of a product's left factor, or images, channels last.
struct VendorLayer {
  enum class Kind : uint8_t { kProduct, kConvolution };
  Kind kind = Kind::kProduct;
  // Of a product: weights [k, n], whose lines are `line` elements apart.
  int64_t k = 0, n = 0, line = 0;
  // Of a convolution: weights [outputs, taps, taps, channels / groups].
  int64_t in[2] = {}, out[2] = {}, taps[2] = {}, stride[2] = {}, dilation[2] = {};
  int64_t low[2] = {};  // padding before and, unless `uneven`, behind
  bool uneven = false;
  int64_t channels = 0, outputs = 0, groups = 1;

  bool is_product() const { return kind == Kind::kProduct; }
  // Elements of one row.
  int64_t XRow() const { return is_product() ? k : in[0] * in[1] * channels; }
  int64_t YRow() const { return is_product() ? n : out[0] * out[1] * outputs; }
  int64_t WeightElements() const {
    return is_product() ? k * line : outputs * taps[0] * taps[1] * (channels / groups);
  }
  // Bytes to which rows, results and weights are aligned, whichever row is the first.
  int64_t Alignment() const;
  // Equal for equal layers.
  std::string Key() const;
  // Element `at` of the result for one row, and the sum of the magnitudes of what it adds up.
  double Element(const float* x, const float* weights, int64_t at, double* magnitude) const;
};

// Addresses of the device.
struct VendorArgs {
  const float* x;
  const float* weights;
  float* y;
  int64_t rows;
  std::byte* workspace;
  uint64_t workspace_bytes;
};

// A routine of a library with one configuration for a layer, whatever the rows. Threading:
// immutable, any thread.
class VendorCall {
 public:
  virtual ~VendorCall() = default;
  virtual std::string Text() const = 0;  // for reasons: "algorithm 21"
  // What it needs for so many rows. UNIMPLEMENTED: it does not compute so many.
  virtual absl::StatusOr<uint64_t> WorkspaceBytes(int64_t rows) const = 0;
  // Puts the work into the stream, which may be one that is captured. Its device is the thread's.
  virtual absl::Status Enqueue(FloeCudaStream stream, const VendorArgs& args) const = 0;
};

}  // namespace floe::cuda
