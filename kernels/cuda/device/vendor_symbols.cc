#include "kernels/cuda/device/vendor_symbols.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace floe::cuda {

absl::StatusOr<OpenedLibrary> OpenedLibrary::Open(const std::vector<std::string>& files) {
  std::string reasons;
  for (const std::string& file : files) {
    // Never closed: such libraries have threads and handlers of their own.
    if (void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return OpenedLibrary(handle, file);
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", dlerror());
  }
  return absl::FailedPreconditionError(reasons);
}

absl::Status OpenedLibrary::FindAddress(const char* name, void** address) const {
  *address = dlsym(handle_, name);
  if (*address != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(file_, " has no function ", name));
}

}  // namespace floe::cuda
