// WeightStore: equal packed weights once in a process, whichever signatures, versions and models
// have them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/numeric/int128.h"
#include "base/mutex.h"
#include "kernels/kernel.h"

namespace floe {

// Keeps no kernel alive: one that nobody uses any more is freed. Keys are KernelKey::hash.
// Threading: any thread.
class WeightStore {
 public:
  // Null when nobody uses such a kernel.
  std::shared_ptr<const Kernel> Find(absl::uint128 key) const {
    MutexLock lock(mutex_);
    const auto found = kernels_.find(key);
    return found == kernels_.end() ? nullptr : found->second.lock();
  }

  // What all who ask for the key share from now on: this kernel, or an equal one that another
  // thread has added in the meantime.
  std::shared_ptr<const Kernel> Add(absl::uint128 key, std::shared_ptr<const Kernel> kernel) {
    MutexLock lock(mutex_);
    if (kernels_.size() >= sweep_at_) {
      std::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = std::max(kFewest, 2 * kernels_.size());
    }
    std::weak_ptr<const Kernel>& entry = kernels_[key];
    if (auto earlier = entry.lock()) return earlier;
    entry = kernel;
    return kernel;
  }

  // Entries, which may include some of kernels that are gone.
  size_t size() const {
    MutexLock lock(mutex_);
    return kernels_.size();
  }

 private:
  static constexpr size_t kFewest = 64;
  mutable Mutex mutex_;
  std::map<absl::uint128, std::weak_ptr<const Kernel>> kernels_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = kFewest;
};

}  // namespace floe
