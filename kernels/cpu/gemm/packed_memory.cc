#include "kernels/cpu/gemm/packed_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace floe::kernels {
namespace {

constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

}  // namespace

AlignedBuffer PackedMemory(size_t bytes) {
  AlignedBuffer memory(bytes);
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  // Whole pages only: they take no more memory. A system without them refuses, which is no matter.
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage,
                  last = (begin + bytes) / kHugePage * kHugePage;
  if (first < last) {
    std::byte* const pages = memory.data() + (first - begin);
    (void)madvise(pages, last - first, MADV_HUGEPAGE);
  }
  return memory;
}

}  // namespace floe::kernels
