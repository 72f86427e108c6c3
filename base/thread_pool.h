// A fixed set of threads that split one loop at a time (intra-op parallelism).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace floe {

// Threading: ParallelFor is called by one thread at a time (the owning ExecContext's); it returns
// when every chunk is done. With no extra threads it is a plain loop. Chunks may run in any order
// on any thread, so the body must write disjoint data and must not split a sum. What the body
// throws reaches the caller, the first where several do; chunks that had not begun are left out
// then.
class ThreadPool {
 public:
  // `threads` in total, the caller's included; at least 1. Throws std::system_error where they
  // cannot be made.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) for i in [0, chunks).
  template <typename Body>
  void ParallelFor(int64_t chunks, const Body& body) {
    if (workers_.empty() || chunks <= 1) {
      for (int64_t i = 0; i < chunks; ++i) body(i);
      return;
    }
    Run(
        chunks, [](const void* b, int64_t i) { (*static_cast<const Body*>(b))(i); }, &body);
  }

 private:
  void Stop();
  using Trampoline = void (*)(const void* body, int64_t chunk);
  void Run(int64_t chunks, Trampoline call, const void* body);
  void Work();
  void Drain(Trampoline call, const void* body, int64_t chunks);

  Mutex mutex_;
  CondVar wake_, done_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  Trampoline call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  const void* body_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t chunks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);  // by a body of the present loop
  std::atomic<int64_t> next_{0};
  std::vector<std::thread> workers_;
};

}  // namespace floe
