// Opening libfloe_cuda.so, which nothing links.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/library.h"

namespace floe::cuda {

// The kernels of this program's kernel_list.h, which a library must have.
absl::Span<const FloeCudaKernel> ListedKernels();

// An opened library. It stays open as long as the process. Threading: any thread.
class Library {
 public:
  // The file that FLOE_CUDA_LIBRARY names; without it libfloe_cuda.so beside the program, or in
  // ../lib/floe as seen from there. NOT_FOUND names where it was looked for.
  static absl::StatusOr<std::shared_ptr<const Library>> Open();
  // FAILED_PRECONDITION for a file that is no such library, or is another version's.
  static absl::StatusOr<std::shared_ptr<const Library>> OpenFile(const std::string& path);

  const std::string& path() const { return path_; }
  const FloeCudaLibrary& calls() const { return calls_; }

  // How many devices there are, 1 or more; else why floe can use none.
  absl::StatusOr<int> CountDevices() const;
  // "CUDA 13.0, driver 13.1", or "CUDA 13.0, no driver".
  std::string Versions() const;

 private:
  Library(std::string path, const FloeCudaLibrary& calls) : path_(std::move(path)), calls_(calls) {}
  const std::string path_;
  const FloeCudaLibrary& calls_;
};

}  // namespace floe::cuda
