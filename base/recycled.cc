#include "base/recycled.h"

namespace floe {
namespace {

#ifdef FLOE_SANITIZED
constexpr size_t kKept = 0;
#else
constexpr size_t kKept = BlockStore::kMost;
#endif

}  // namespace

void* BlockStore::Take() {
  {
    MutexLock lock(mutex_);
    if (free_ != nullptr) {
      Free* const block = free_;
      free_ = block->next;
      --count_;
      return block;
    }
  }
  return ::operator new(block_bytes_);
}

void BlockStore::Give(void* block) {
  {
    MutexLock lock(mutex_);
    if (count_ < kKept) {
      free_ = new (block) Free{free_};
      ++count_;
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace floe
