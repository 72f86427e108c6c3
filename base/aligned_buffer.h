// Memory aligned for every SIMD level and cache line.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace floe {

inline constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

constexpr size_t AlignUp(size_t bytes, size_t to = kAlignment) {
  return (bytes + to - 1) / to * to;
}

// Owns `size()` bytes; movable, not copyable. Contents are uninitialised. Throws std::bad_alloc.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes)
      : data_(bytes == 0 ? nullptr
                         : static_cast<std::byte*>(std::aligned_alloc(kAlignment, AlignUp(bytes)))),
        size_(bytes) {
    if (bytes != 0 && data_ == nullptr) throw std::bad_alloc();
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace floe
