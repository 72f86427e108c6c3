// What both fakes share.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>

#include "tests/cuda/fake_cudart.h"
#include "tests/cuda/fake_vendor.h"

namespace floe::fake_vendor {

// Makes and frees what a handle stands for.
template <typename T>
int Make(void** made) {
  *made = new T{};
  return 0;
}
template <typename T>
int Free(void* made) {
  delete static_cast<T*>(made);
  return 0;
}

inline float Factor(float f, int behaviour) {
  if (behaviour == FAKE_VENDOR_LOSES_NAN && f != f) return 0;
  if (behaviour != FAKE_VENDOR_LESS_EXACT) return f;
  uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof bits);
  bits = (bits + 0x1000) & ~uint32_t{0x1fff};
  std::memcpy(&f, &bits, sizeof bits);
  return f;
}

// Sums from the end where the order follows the rows and those are many.
inline bool SumsBackwards(int behaviour, int algorithm, int64_t rows) {
  const bool follows = behaviour == FAKE_VENDOR_FOLLOWS_BATCH ||
                       (behaviour == FAKE_VENDOR_SECOND_IS_RIGHT && algorithm == 0);
  return follows && rows > 16;
}

// 0, or what a call that should compute returns.
inline int Fails(FakeVendor* vendor, int error) {
  ++vendor->calls;
  return vendor->behaviour == FAKE_VENDOR_FAILS ? error : 0;
}

inline void Put(void* stream, const std::function<int()>& work) {
  fake_cuda_enqueue(stream, &work);
}

}  // namespace floe::fake_vendor
