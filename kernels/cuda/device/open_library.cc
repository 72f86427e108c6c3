#include "kernels/cuda/device/open_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "kernels/cuda/device/errors.h"
#include "kernels/cuda/kernel_list.h"

namespace floe::cuda {
namespace {

constexpr char kFileName[] = "libfloe_cuda.so";
constexpr char kSameVersion[] = "install floe and floe-cuda of the same version";

constexpr FloeCudaKernel kListed[] = {
#define FLOE_CUDA_LISTED(name, Args, threads) {#name, threads, static_cast<int32_t>(sizeof(Args))},
    FLOE_CUDA_KERNELS(FLOE_CUDA_LISTED)
#undef FLOE_CUDA_LISTED
};

std::vector<std::string> Places() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const auto folder = program.parent_path();
  return {(folder / kFileName).string(),
          (folder.parent_path() / "lib" / "floe" / kFileName).string()};
}

absl::Status CheckKernels(const std::string& path, const FloeCudaLibrary& calls) {
  const absl::Span<const FloeCudaKernel> listed = ListedKernels();
  if (calls.kernel_count != listed.size())
    return absl::FailedPreconditionError(absl::StrCat(path, " has ", calls.kernel_count,
                                                      " kernels, and this program lists ",
                                                      listed.size(), ": ", kSameVersion));
  for (size_t i = 0; i < listed.size(); ++i) {
    const FloeCudaKernel& theirs = calls.kernels[i];
    const FloeCudaKernel& ours = listed[i];
    if (std::string(theirs.name) != ours.name || theirs.threads != ours.threads ||
        theirs.args_bytes != ours.args_bytes)
      return absl::FailedPreconditionError(absl::StrCat(
          path, ": its kernel ", i, " is ", theirs.name, " of ", theirs.threads, " threads and ",
          theirs.args_bytes, " bytes of arguments, and this program lists ", ours.name, " of ",
          ours.threads, " and ", ours.args_bytes, ": ", kSameVersion));
  }
  return absl::OkStatus();
}

// The first two members have their place in every version.
absl::Status CheckTable(const std::string& path, const FloeCudaLibrary* calls) {
  if (calls == nullptr)
    return absl::FailedPreconditionError(absl::StrCat(path, " gives no table of calls"));
  if (calls->version != FLOE_CUDA_VERSION)
    return absl::FailedPreconditionError(absl::StrCat(path, " has version ", calls->version,
                                                      " of the calls, and this program needs ",
                                                      FLOE_CUDA_VERSION, ": ", kSameVersion));
  if (calls->bytes != sizeof(FloeCudaLibrary))
    return absl::FailedPreconditionError(absl::StrCat(path, " has a table of ", calls->bytes,
                                                      " bytes, and this program one of ",
                                                      sizeof(FloeCudaLibrary), ": ", kSameVersion));
  return CheckKernels(path, *calls);
}

}  // namespace

absl::Span<const FloeCudaKernel> ListedKernels() { return kListed; }

absl::StatusOr<std::shared_ptr<const Library>> Library::Open() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets it
  if (const char* named = std::getenv("FLOE_CUDA_LIBRARY"); named != nullptr && *named != '\0') {
    if (!std::filesystem::exists(named))
      return absl::NotFoundError(
          absl::StrCat("there is no file ", named, ", which FLOE_CUDA_LIBRARY names"));
    return OpenFile(named);
  }
  const std::vector<std::string> places = Places();
  for (const std::string& path : places)
    if (std::filesystem::exists(path)) return OpenFile(path);
  return absl::NotFoundError(
      absl::StrCat("the library with the CUDA kernels is not installed (there is no ",
                   absl::StrJoin(places, " or "),
                   "): install the package floe-cuda, or name the file by FLOE_CUDA_LIBRARY"));
}

absl::StatusOr<std::shared_ptr<const Library>> Library::OpenFile(const std::string& path) {
  // Never closed: the CUDA runtime has threads and handlers of its own.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr)
    return absl::FailedPreconditionError(absl::StrCat("cannot open ", path, ": ", dlerror()));
  const auto function =
      reinterpret_cast<FloeCudaLibraryFunction>(dlsym(handle, FLOE_CUDA_FUNCTION_NAME));
  if (function == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is no ", kFileName, ": it has no ", FLOE_CUDA_FUNCTION_NAME));
  const FloeCudaLibrary* const calls = function();
  FLOE_RETURN_IF_ERROR(CheckTable(path, calls));
  return std::shared_ptr<const Library>(new Library(path, *calls));
}

absl::StatusOr<int> Library::CountDevices() const {
  int driver = 0, runtime = 0, count = 0;
  int error = calls_.versions(&driver, &runtime);
  if (error == 0) error = calls_.device_count(&count);
  // The runtime reports a missing driver as one that is too old.
  if (error == 0 && count == 0) error = kCudaNoDevice;
  if (error != 0) return StartError(calls_, error, driver, runtime);
  return count;
}

std::string Library::Versions() const {
  int driver = 0, runtime = 0;
  if (calls_.versions(&driver, &runtime) != 0) return "CUDA of an unknown version";
  return absl::StrCat("CUDA ", CudaVersionText(runtime), ", ",
                      driver == 0 ? "no driver" : "driver " + CudaVersionText(driver));
}

}  // namespace floe::cuda
