// Splitting a loop over a kernel's thread pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace floe::kernels {

// Calls body(begin, end) for disjoint parts of [0, n), each at least `grain` long but the last. The
// bounds of the parts must not show in the results.
template <class Body>
void ParallelRange(ThreadPool* pool, int64_t n, int64_t grain, const Body& body) {
  const int64_t most = (n + grain - 1) / std::max<int64_t>(grain, 1);
  const int64_t parts = std::min<int64_t>(pool->threads(), most);
  if (parts <= 1) {
    if (n > 0) body(0, n);
    return;
  }
  const int64_t step = (n + parts - 1) / parts;
  pool->ParallelFor(parts, [&](int64_t part) {
    const int64_t begin = part * step, end = std::min(n, begin + step);
    if (begin < end) body(begin, end);
  });
}

inline constexpr int64_t kElementGrain = 32768;  // elements of cheap work that are worth a thread

}  // namespace floe::kernels
