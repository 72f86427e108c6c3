// cuBLASLt, opened at run time: products.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/vendor_layer.h"

namespace floe::cuda {

// The library, and its handle for one device. Threading: any thread.
class CublasLt {
 public:
  // `file`: empty: libcublasLt.so.13 or .12 as the linker finds it. The device is the thread's.
  static absl::StatusOr<std::shared_ptr<const CublasLt>> Open(const std::string& file);
  virtual ~CublasLt() = default;

  virtual std::string Version() const = 0;  // "cuBLASLt 13.0.2"
  // What it proposes for a product, for many rows and for one, the best first: without tensor cores
  // and without splitting a sum. UNIMPLEMENTED: nothing.
  virtual absl::StatusOr<std::vector<std::shared_ptr<const VendorCall>>> Propose(
      const VendorLayer& layer, int64_t most_rows) const = 0;
};

}  // namespace floe::cuda
