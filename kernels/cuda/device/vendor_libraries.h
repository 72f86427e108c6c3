// VendorLibraries: cuBLASLt and cuDNN, where floe may use them on a device.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kernels/cuda/device/cublaslt.h"
#include "kernels/cuda/device/cudnn.h"
#include "kernels/cuda/device/vendor_proof.h"

namespace floe::cuda {

// Of one device. Threading: any thread.
class VendorLibraries {
 public:
  // Opens what is chosen. What cannot be opened is not used: Text() says why. The device is the
  // thread's.
  explicit VendorLibraries(const VendorChoice& choice);

  bool any() const { return cublaslt_ != nullptr || cudnn_ != nullptr; }
  // "cuBLASLt 13.0.2, no cuDNN: libcudnn.so.9: cannot open ..."
  const std::string& text() const { return text_; }
  // Whether a library that was chosen is not used.
  bool missing() const { return missing_; }

  // What computes the layer on the device, which is that of this; proven once for equal layers.
  // Errors are those of the device, after which it cannot be used.
  absl::StatusOr<ProvenCall> Find(const std::shared_ptr<Device>& device, const VendorLayer& layer);

 private:
  absl::StatusOr<ProvenCall> Prove(const std::shared_ptr<Device>& device,
                                   const VendorLayer& layer) const;

  std::shared_ptr<const CublasLt> cublaslt_;
  std::shared_ptr<const Cudnn> cudnn_;
  std::string text_;
  bool missing_ = false;
  Mutex mutex_;  // held by a proof, so that each is made once
  std::map<std::string, ProvenCall> proven_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace floe::cuda
