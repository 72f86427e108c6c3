#include "runtime/use_libraries.h"

#include <utility>

#include "base/memory_budget.h"
#include "base/status.h"
#include "kernels/cuda/device/vendor_libraries.h"
#include "kernels/cuda/device_kernel.h"
#include "kernels/cuda/emit/by_library.h"

namespace floe {
namespace {

// Holds its share of the host's memory: a product has the weights of `own`, a convolution others.
absl::StatusOr<std::shared_ptr<const Kernel>> PaidKernel(std::shared_ptr<const Kernel> own,
                                                         bool product,
                                                         cuda::LibraryRoutine routine) {
  struct Paid {
    MemoryShare share;
    std::shared_ptr<const Kernel> kernel;
  };
  const auto paid = std::make_shared<Paid>();
  paid->kernel = cuda::ByLibrary(std::move(own), std::move(routine));
  const size_t bytes = product ? 0 : paid->kernel->PackedBytes();
  FLOE_ASSIGN_OR_RETURN(paid->share, TakeMemory(static_cast<int64_t>(bytes)));
  return std::shared_ptr<const Kernel>(paid, paid->kernel.get());
}

}  // namespace

absl::Status UseLibraries(const std::shared_ptr<cuda::Device>& device, Program* program) {
  cuda::VendorLibraries* const libraries = device->libraries();
  if (libraries == nullptr || !libraries->any()) return absl::OkStatus();
  for (size_t i = 0; i < program->kernels.size(); ++i) {
    std::shared_ptr<const Kernel>& kernel = program->kernels[i];
    const auto* const own = dynamic_cast<const cuda::DeviceKernel*>(kernel.get());
    const auto layer = own == nullptr ? std::nullopt : own->Layer();
    if (!layer.has_value()) continue;
    const bool product = layer->is_product();
    const std::string& node = program->graph.node(static_cast<int>(i)).name;
    FLOE_ASSIGN_OR_RETURN(cuda::ProvenCall proven, libraries->Find(device, *layer));
    if (proven.call == nullptr) {
      program->by_library.push_back({node, "", proven.why_not});
      continue;
    }
    cuda::LibraryRoutine routine{product ? "cublaslt" : "cudnn", std::move(proven.call),
                                 proven.most_rows, proven.workspace_bytes};
    FLOE_ASSIGN_OR_RETURN(kernel, PaidKernel(kernel, product, std::move(routine)));
    program->by_library.push_back({node, kernel->Route(), ""});
  }
  return absl::OkStatus();
}

}  // namespace floe
