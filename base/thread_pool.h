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
// on any thread, so the body must write disjoint data and must not split a sum. Each thread begins
// with a share of neighbouring chunks, the same in every loop, so that what it wrote in one loop is
// in its cache in the next; then it helps the others. What the body throws reaches the caller, the
// first where several do; chunks that had not begun are left out then. The caller waits only for
// threads that took part. Where there is a CPU for each thread they look for the next loop a little
// while before they sleep: waking costs more than a small step.
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
  void Work(int index);
  void Drain(int index, Trampoline call, const void* body);

  template <typename Ready>
  void Spin(const Ready& ready) const;

  // The chunks [next, end) that a thread begins with; whoever has none left takes from the others.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> end{0};
    bool empty() const { return next.load() >= end.load(); }
  };

  Mutex mutex_;
  CondVar wake_, done_;
  // Of the present loop; workers may join while it is open.
  Trampoline call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  const void* body_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  std::exception_ptr thrown_ ABSL_GUARDED_BY(mutex_);  // by its body
  int asleep_ ABSL_GUARDED_BY(mutex_) = 0;             // workers that wait for wake_
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // Written under mutex_; read without it by who spins.
  std::atomic<uint64_t> generation_{0};  // of the loop
  std::atomic<int> seats_{0};            // for workers that spin; the others need not join
  std::atomic<int> joined_{0};           // workers in the loop
  std::vector<Share> shares_;            // by thread, the caller's first
  bool spin_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace floe
