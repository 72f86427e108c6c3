#include "runtime/value_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/aligned_buffer.h"
#include "base/budget.h"
#include "base/memory_budget.h"
#include "base/mutex.h"
#include "base/status.h"
#include "model/handle.h"

namespace floe {
namespace {

// Blocks come in four sizes to a doubling, so that at most a quarter of one is wasted and values
// that differ little share blocks.
constexpr int kSmallestLog2 = 6;  // kAlignment
constexpr int kLargestLog2 = 46;
constexpr int kSteps = 4;
constexpr int kClasses = (kLargestLog2 - kSmallestLog2) * kSteps + 1;

struct BlockClass {
  int index;
  size_t bytes;
};

BlockClass ClassOf(size_t bytes) {
  if (bytes <= kAlignment) return {0, kAlignment};
  const int log2 = std::bit_width(bytes - 1) - 1;  // 2^log2 < bytes <= 2^(log2 + 1)
  const size_t step = (size_t{1} << log2) / kSteps;
  const size_t steps = (bytes - (size_t{1} << log2) + step - 1) / step;  // 1..kSteps
  const int index = (log2 - kSmallestLog2) * kSteps + static_cast<int>(steps);
  return {index, (size_t{1} << log2) + steps * step};
}

size_t BytesOf(int index) {
  if (index == 0) return kAlignment;
  const size_t base = size_t{1} << (kSmallestLog2 + (index - 1) / kSteps);
  return base + ((index - 1) % kSteps + 1) * (base / kSteps);
}

}  // namespace

class ValuePool::Core : public MemoryKeeper, public std::enable_shared_from_this<Core> {
 public:
  ~Core() override { Trim(); }

  // Null when memory is short.
  void* Take(size_t bytes) {
    const BlockClass block = ClassOf(bytes);
    Block* surplus = nullptr;
    {
      MutexLock lock(mutex_);
      used_ += block.bytes;
      if (Block* first = free_[block.index]; first != nullptr) {
        free_[block.index] = first->next;
        return first;
      }
      peak_ = std::max(peak_, used_);
      surplus = TakeSurplus(block);
      held_ += block.bytes;
    }
    Free(surplus);
    void* const fresh = Allocate(block.bytes);
    if (fresh == nullptr) {
      MutexLock lock(mutex_);
      used_ -= block.bytes;
      held_ -= block.bytes;
    }
    return fresh;
  }

  void Return(void* memory, size_t bytes) {
    const BlockClass block = ClassOf(bytes);
    MutexLock lock(mutex_);
    used_ -= block.bytes;
    free_[block.index] = new (memory) Block{free_[block.index]};
  }

  size_t Trim() {
    std::array<Block*, kClasses> unused{};
    size_t bytes = 0;
    {
      MutexLock lock(mutex_);
      std::swap(unused, free_);
      bytes = held_ - used_;
      held_ = used_;
      peak_ = used_;
      PayLess();
    }
    for (Block* first : unused) Free(first);
    return bytes;
  }

  void GiveBack() override { Trim(); }

  size_t held() const {
    MutexLock lock(mutex_);
    return held_;
  }
  size_t used() const {
    MutexLock lock(mutex_);
    return used_;
  }

 private:
  struct Block {  // that is free; lies in the block itself
    Block* next;
  };

  // Without the lock: whoever is asked for memory may ask this pool to give some back.
  void* Allocate(size_t bytes) {
    absl::StatusOr<MemoryShare> share = TakeMemory(static_cast<int64_t>(bytes));
    if (!share.ok()) return nullptr;
    void* const fresh = std::aligned_alloc(kAlignment, AlignUp(bytes));
    if (fresh == nullptr) return nullptr;
    bool first = false;
    {
      MutexLock lock(mutex_);
      if (!known_ && share->bytes() > 0) first = known_ = true;
      share_.Add(*std::move(share));
    }
    if (first) MemoryScope::Current()->AddKeeper(weak_from_this());
    return fresh;
  }

  static void Free(Block* first) {
    while (first != nullptr) std::free(std::exchange(first, first->next));
  }

  // Blocks of other sizes, the largest first, as far as the pool would hold more than was ever in
  // use at one time: a list of them.
  Block* TakeSurplus(const BlockClass& wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Block* taken = nullptr;
    for (int i = kClasses - 1; i >= 0 && HoldsTooMuchFor(wanted); --i) {
      while (free_[i] != nullptr && HoldsTooMuchFor(wanted)) {
        Block* const block = std::exchange(free_[i], free_[i]->next);
        block->next = std::exchange(taken, block);
        held_ -= BytesOf(i);
      }
    }
    if (taken != nullptr) PayLess();
    return taken;
  }

  bool HoldsTooMuchFor(const BlockClass& wanted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return held_ + wanted.bytes > std::max(peak_, kAlwaysKept);
  }

  void PayLess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (share_.bytes() > static_cast<int64_t>(held_))
      (void)share_.Resize(static_cast<int64_t>(held_));
  }

  // Small pools keep whatever they had.
  static constexpr size_t kAlwaysKept = size_t{1} << 20;

  mutable Mutex mutex_;
  std::array<Block*, kClasses> free_ ABSL_GUARDED_BY(mutex_) = {};
  size_t held_ ABSL_GUARDED_BY(mutex_) = 0, used_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t peak_ ABSL_GUARDED_BY(mutex_) = 0;     // of used_, since the last Trim
  bool known_ ABSL_GUARDED_BY(mutex_) = false;  // to the budget, as a keeper
  MemoryShare share_ ABSL_GUARDED_BY(mutex_);
};

namespace {

// For std::allocate_shared: what counts a tensor's references comes from the pool as well.
template <typename T, typename Core>
struct CoreAllocator {
  using value_type = T;
  explicit CoreAllocator(std::shared_ptr<Core> c) : core(std::move(c)) {}
  template <typename U>
  CoreAllocator(const CoreAllocator<U, Core>& other) : core(other.core) {}  // NOLINT: rebinding

  T* allocate(size_t n) {
    void* memory = core->Take(n * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t n) { core->Return(memory, n * sizeof(T)); }
  template <typename U>
  bool operator==(const CoreAllocator<U, Core>& other) const {
    return core == other.core;
  }

  std::shared_ptr<Core> core;
};

// A block while a tensor uses it; ends the elements' lives.
template <typename Core>
class Lease {
 public:
  Lease(std::shared_ptr<Core> core, size_t bytes)
      : charge_(static_cast<int64_t>(bytes)),
        core_(std::move(core)),
        bytes_(bytes),
        memory_(core_->Take(bytes)) {}
  Lease(const Lease&) = delete;
  ~Lease() {
    if (memory_ == nullptr) return;
    std::destroy_n(static_cast<std::string*>(memory_), strings_);
    std::destroy_n(static_cast<Handle*>(memory_), handles_);
    core_->Return(memory_, bytes_);
  }

  void* memory() const { return memory_; }
  void MakeStrings(size_t n) {
    std::uninitialized_value_construct_n(static_cast<std::string*>(memory_), n);
    strings_ = n;
  }
  void MakeHandles(size_t n) {
    std::uninitialized_value_construct_n(static_cast<Handle*>(memory_), n);
    handles_ = n;
  }

 private:
  const MemoryCharge charge_;
  const std::shared_ptr<Core> core_;
  const size_t bytes_;
  void* const memory_;
  size_t strings_ = 0, handles_ = 0;  // elements with a life of their own
};

}  // namespace

ValuePool::ValuePool() : core_(std::make_shared<Core>()) {}
ValuePool::~ValuePool() = default;

absl::StatusOr<Tensor> ValuePool::Allocate(DType dtype, const Shape& shape) {
  const size_t element = dtype == DType::kString ? sizeof(std::string)
                         : IsHandle(dtype)       ? sizeof(Handle)
                                                 : DTypeSize(dtype);
  FLOE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElements(shape.dims(), element));
  const auto count = static_cast<size_t>(elements);
  if (count == 0) return Tensor::Allocate(dtype, shape);  // takes no memory
  FLOE_RETURN_IF_ERROR(CheckValueBytes(static_cast<int64_t>(count * element)));
  using Lease = Lease<Core>;
  auto lease =
      std::allocate_shared<Lease>(CoreAllocator<Lease, Core>(core_), core_, count * element);
  if (lease->memory() == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("memory for a value of ", DTypeName(dtype),
                                                     shape.ToString(), " cannot be had"));
  if (DTypeSize(dtype) != 0) FillMemory(fill(), lease->memory(), count * element);
  if (dtype == DType::kString) lease->MakeStrings(count);
  if (IsHandle(dtype)) lease->MakeHandles(count);
  const void* data = lease->memory();
  return Tensor::Borrow(dtype, shape, std::move(lease), data);
}

absl::StatusOr<Tensor> ValuePool::Copy(const TensorView& view) {
  FLOE_ASSIGN_OR_RETURN(Tensor copy, Allocate(view.dtype, view.shape));
  CopyElements(view, copy.mutable_data());
  return copy;
}

size_t ValuePool::held_bytes() const { return core_->held(); }
size_t ValuePool::used_bytes() const { return core_->used(); }
size_t ValuePool::Trim() { return core_->Trim(); }

}  // namespace floe
