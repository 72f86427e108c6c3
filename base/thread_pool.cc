#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "base/cpus.h"
#include "base/denormals.h"
#include "base/running.h"
#include "base/threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace floe {
namespace {

// About what it takes to put a thread to sleep and to wake it.
constexpr std::chrono::microseconds kSpinTime(30);
constexpr int kPausesOfALook = 16;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Who spins must not hold up the thread that it waits for.
bool HaveCpus(int threads) {
  static const int usable = FindUsableCpus().count();
  const auto& allowed = ScopedThreadTraits::Current().cpus;
  return threads <= usable && (allowed.empty() || threads <= static_cast<int>(allowed.size()));
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : shares_(threads > 1 ? static_cast<size_t>(threads) : 0),
      spin_(threads > 1 && HaveCpus(threads)) {
  try {
    for (int i = 1; i < threads; ++i)
      workers_.push_back(SpawnThread(ScopedThreadTraits::Current(), [this, i] { Work(i); }));
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& worker : workers_) worker.join();
}

namespace {

// A loop, and what the thread works on that wants it.
struct Loop {
  void (*call)(const void* body, int64_t chunk);
  const void* body;
  const Running* running;
};

void RunChunk(const void* loop, int64_t chunk) {
  const auto& of = *static_cast<const Loop*>(loop);
  const Running::Scope scope(of.running);
  of.call(of.body, chunk);
}

}  // namespace

// A participant's share. It ends here whatever happens: the others still use the body.
void ThreadPool::Drain(int index, Trampoline call, const void* body) {
  try {
    for (int i = 0; i < threads(); ++i) {
      Share& share = shares_[static_cast<size_t>((index + i) % threads())];
      while (!share.empty()) {
        const int64_t chunk = share.next.fetch_add(1);
        if (chunk < share.end.load()) call(body, chunk);
      }
    }
  } catch (...) {
    for (Share& share : shares_) share.next.store(INT64_MAX / 2);
    MutexLock lock(mutex_);
    if (thrown_ == nullptr) thrown_ = std::current_exception();
  }
}

// Returns once `ready`, or after a little while.
template <typename Ready>
void ThreadPool::Spin(const Ready& ready) const {
  if (!spin_) return;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesOfALook; ++i) {
      if (ready()) return;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
}

void ThreadPool::Run(int64_t chunks, Trampoline call, const void* body) {
  const Loop loop{call, body, Running::Current()};
  const auto wanted = static_cast<int>(std::min<int64_t>(threads(), chunks)) - 1;
  int asleep;
  {
    MutexLock lock(mutex_);
    call_ = RunChunk;
    body_ = &loop;
    for (int64_t i = 0; i < threads(); ++i) {
      Share& share = shares_[static_cast<size_t>(i)];
      share.next.store(i * chunks / threads());
      share.end.store((i + 1) * chunks / threads());
    }
    open_ = true;
    seats_.store(wanted);
    generation_.fetch_add(1);
    asleep = asleep_;
  }
  if (asleep > 0 && asleep <= wanted) {
    wake_.NotifyAll();
  } else {
    for (int i = 0; i < std::min(asleep, wanted); ++i) wake_.NotifyOne();
  }
  Drain(0, call, body);
  {
    MutexLock lock(mutex_);
    open_ = false;
  }
  Spin([this] { return joined_.load() == 0; });
  std::exception_ptr thrown;
  {
    MutexLock lock(mutex_);
    while (joined_.load() != 0) done_.Wait(mutex_);
    thrown = std::exchange(thrown_, nullptr);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void ThreadPool::Work(int index) {
  const ScopedFlushDenormals flush;
  uint64_t seen = 0;
  while (true) {
    uint64_t now = seen;
    Spin([&] { return (now = generation_.load()) != seen; });
    if (now != seen && seats_.fetch_sub(1) <= 0) {
      seen = now;
      continue;
    }
    Trampoline call;
    const void* body;
    {
      MutexLock lock(mutex_);
      ++asleep_;
      while (!stop_ && generation_.load() == seen) wake_.Wait(mutex_);
      --asleep_;
      if (stop_) return;
      seen = generation_.load();
      if (!open_ || std::all_of(shares_.begin(), shares_.end(), std::mem_fn(&Share::empty)))
        continue;  // the others have it all
      call = call_;
      body = body_;
      joined_.fetch_add(1);
    }
    Drain(index, call, body);
    MutexLock lock(mutex_);
    if (joined_.fetch_sub(1) == 1) done_.NotifyOne();
  }
}

}  // namespace floe
