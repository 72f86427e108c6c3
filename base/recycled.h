// Memory of objects that come and go with every request, kept for the next ones, so that none is
// allocated in steady state.
#pragma once

#include <cstddef>
#include <new>

#include "base/mutex.h"

namespace floe {

// Blocks of one size. Given-back ones are kept, up to kMost; under sanitizers none are, so that
// nothing hides a use after the end. Threading: any thread.
class BlockStore {
 public:
  static constexpr size_t kMost = 1024;

  explicit BlockStore(size_t block_bytes) : block_bytes_(block_bytes) {}
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  void* Take();
  void Give(void* block);

 private:
  struct Free {
    Free* next;
  };
  const size_t block_bytes_;
  Mutex mutex_;
  Free* free_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;  // in the list
};

// The blocks for objects of a type. Lives as long as the process.
template <typename T>
BlockStore& BlocksOf() {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  static BlockStore* const store =
      new BlockStore(sizeof(T) < sizeof(void*) ? sizeof(void*) : sizeof(T));
  return *store;
}

// For std::allocate_shared.
template <typename T>
class RecyclingAllocator {
 public:
  using value_type = T;

  RecyclingAllocator() = default;
  template <typename Other>
  explicit RecyclingAllocator(const RecyclingAllocator<Other>&) {}

  T* allocate(size_t count) {
    return static_cast<T*>(count == 1 ? BlocksOf<T>().Take() : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) {
    if (count == 1) return BlocksOf<T>().Give(memory);
    ::operator delete(memory);
  }
  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) { return true; }
};

}  // namespace floe
