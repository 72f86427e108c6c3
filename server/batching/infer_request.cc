#include "server/batching/infer_request.h"

#include "base/budget.h"

namespace floe::server {

absl::Status PendingInputs::Decode() {
  MutexLock lock(mutex_);
  if (decode_ == nullptr) return status_;
  const std::function<void()> decode = std::exchange(decode_, nullptr);
  status_ = CatchOutOfMemory([&] {
    decode();
    return absl::OkStatus();
  });
  return status_;
}

}  // namespace floe::server
