// Libraries of NVIDIA that are opened at run time, and their functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace floe::cuda {

// Threading: any thread.
class OpenedLibrary {
 public:
  // The first of the files that can be opened, which stays so as long as the process.
  // FAILED_PRECONDITION says why none can.
  static absl::StatusOr<OpenedLibrary> Open(const std::vector<std::string>& files);

  const std::string& file() const { return file_; }

  // FAILED_PRECONDITION: it has no such function.
  template <typename Function>
  absl::Status Find(const char* name, Function* function) const {
    void* found = nullptr;
    absl::Status status = FindAddress(name, &found);
    *function = reinterpret_cast<Function>(found);
    return status;
  }

 private:
  OpenedLibrary(void* handle, std::string file) : handle_(handle), file_(std::move(file)) {}
  absl::Status FindAddress(const char* name, void** address) const;
  void* handle_;
  std::string file_;
};

}  // namespace floe::cuda
