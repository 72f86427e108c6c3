// WeightStore: equal packed weights once in a process, and once on each device, whichever
// signatures, versions and models have them.
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

namespace cuda {
class DeviceBuffer;
}  // namespace cuda

// Keeps nothing alive: what nobody uses any more is freed. Threading: any thread.
template <typename T>
class SharedByKey {
 public:
  // Null when nobody uses such a one.
  std::shared_ptr<const T> Find(absl::uint128 key) const {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.lock();
  }

  // What all who ask for the key share from now on: this, or an equal one that another thread has
  // added in the meantime.
  std::shared_ptr<const T> Add(absl::uint128 key, std::shared_ptr<const T> value) {
    MutexLock lock(mutex_);
    if (entries_.size() >= sweep_at_) {
      std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = std::max(kFewest, 2 * entries_.size());
    }
    std::weak_ptr<const T>& entry = entries_[key];
    if (auto earlier = entry.lock()) return earlier;
    entry = value;
    return value;
  }

  // Entries, which may include some of what is gone.
  size_t size() const {
    MutexLock lock(mutex_);
    return entries_.size();
  }

 private:
  static constexpr size_t kFewest = 64;
  mutable Mutex mutex_;
  std::map<absl::uint128, std::weak_ptr<const T>> entries_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = kFewest;
};

// Of kernels, by KernelKey::hash. Threading: any thread.
class WeightStore : public SharedByKey<Kernel> {
 public:
  // What devices hold, by its content and the device.
  SharedByKey<cuda::DeviceBuffer>& on_devices() { return on_devices_; }

 private:
  SharedByKey<cuda::DeviceBuffer> on_devices_;
};

}  // namespace floe
