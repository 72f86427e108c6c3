// Types that stand for elements of a size, for kernels that move elements without reading them.
#pragma once

#include <cstdint>
#include <string>

#include "model/dtype.h"
#include "model/handle.h"

namespace floe::kernels {

struct Bytes16 {
  uint64_t low, high;
};

// Calls f with a value of a type that copies as the elements do; nothing is called for kInvalid.
template <class F>
void ForElement(DType dtype, F&& f) {
  if (dtype == DType::kString) return f(std::string());
  if (dtype == DType::kVariant || dtype == DType::kResource) return f(Handle());
  switch (DTypeSize(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    case 16:
      return f(Bytes16{});
    default:
      return;
  }
}

// Bytes from one element to the next in memory.
inline size_t ElementBytes(DType dtype) {
  size_t bytes = 0;
  ForElement(dtype, [&](const auto& element) { bytes = sizeof(element); });
  return bytes;
}

}  // namespace floe::kernels
