#include "kernels/cuda/device/vendor_libraries.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace floe::cuda {

VendorLibraries::VendorLibraries(const VendorChoice& choice) {
  std::vector<std::string> texts;
  const auto note = [&](const char* name, const auto& opened, auto* library) {
    if (opened.ok()) {
      *library = *opened;
      texts.push_back((*library)->Version());
    } else {
      missing_ = true;
      texts.push_back(absl::StrCat("no ", name, ": ", std::string(opened.status().message())));
    }
  };
  if (choice.cublaslt) note("cuBLASLt", CublasLt::Open(choice.cublaslt_file), &cublaslt_);
  if (choice.cudnn) note("cuDNN", Cudnn::Open(choice.cudnn_file), &cudnn_);
  text_ = absl::StrJoin(texts, ", ");
}

absl::StatusOr<ProvenCall> VendorLibraries::Find(const std::shared_ptr<Device>& device,
                                                 const VendorLayer& layer) {
  const std::string key = layer.Key();
  MutexLock lock(mutex_);
  if (const auto found = proven_.find(key); found != proven_.end()) return found->second;
  absl::StatusOr<ProvenCall> proven = Prove(device, layer);
  if (absl::IsResourceExhausted(proven.status()))  // later there may be
    return ProvenCall{.why_not = absl::StrCat("there is no room for its proof: ",
                                              std::string(proven.status().message()))};
  if (proven.ok()) proven_.emplace(key, *proven);
  return proven;
}

absl::StatusOr<ProvenCall> VendorLibraries::Prove(const std::shared_ptr<Device>& device,
                                                  const VendorLayer& layer) const {
  const bool product = layer.is_product();
  if (product ? cublaslt_ == nullptr : cudnn_ == nullptr)
    return ProvenCall{.why_not = product ? "there is no cuBLASLt" : "there is no cuDNN"};
  FLOE_RETURN_IF_ERROR(device->MakeCurrent());
  const auto calls =
      product ? cublaslt_->Propose(layer, RowsToProve(layer)) : cudnn_->Propose(layer);
  if (!calls.ok()) return ProvenCall{.why_not = std::string(calls.status().message())};
  return ProveRows(device, layer, *calls);
}

}  // namespace floe::cuda
