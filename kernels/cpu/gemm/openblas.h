// OpenBLAS, or another CBLAS, opened at run time. It is never linked: who does not choose it does
// not need it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace floe::kernels {

// C = A * B in row-major float32, one thread, C overwritten. Any thread; calls are serialised
// inside when the library was built without thread safety.
class Blas {
 public:
  struct Matrix {
    const float* data;
    int64_t ld;
    bool transposed = false;
  };
  void Multiply(int64_t m, int64_t n, int64_t k, const Matrix& a, const Matrix& b, float* c,
                int64_t ldc) const;

  // "OpenBLAS 0.3.21 ... (/usr/lib/...)" and whether calls are serialised.
  const std::string& description() const { return description_; }

 private:
  friend class BlasLoader;
  void* sgemm_ = nullptr;
  bool serial_ = false;
  std::string description_;
};

// Which library to open instead of the system's OpenBLAS. Call before the first model is loaded.
void SetBlasLibrary(const std::string& path);

// Opened at the first call and kept. FAILED_PRECONDITION names every library tried and the package
// to install.
absl::StatusOr<const Blas*> OpenBlas();

// Name and configuration for status; "not opened" before the first use.
std::string BlasDescription();

}  // namespace floe::kernels
