// cuDNN, opened at run time: convolutions of images.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/vendor_layer.h"

namespace floe::cuda {

// The library, and its handle for one device. Threading: any thread.
class Cudnn {
 public:
  // `file`: empty: libcudnn.so.9 or .8 as the linker finds it. The device is the thread's.
  static absl::StatusOr<std::shared_ptr<const Cudnn>> Open(const std::string& file);
  virtual ~Cudnn() = default;

  virtual std::string Version() const = 0;  // "cuDNN 9.19.0"
  // Its two forms of implicit GEMM, without tensor cores. UNIMPLEMENTED: a convolution that it does
  // not compute.
  virtual absl::StatusOr<std::vector<std::shared_ptr<const VendorCall>>> Propose(
      const VendorLayer& layer) const = 0;
};

}  // namespace floe::cuda
