#include "base/thread_pool.h"

#include <utility>

#include "base/denormals.h"
#include "base/running.h"
#include "base/threads.h"

namespace floe {

ThreadPool::ThreadPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i)
      workers_.push_back(SpawnThread(ScopedThreadTraits::Current(), [this] { Work(); }));
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
void ThreadPool::Drain(Trampoline call, const void* body, int64_t chunks) {
  try {
    for (int64_t i = next_.fetch_add(1); i < chunks; i = next_.fetch_add(1)) call(body, i);
  } catch (...) {
    next_.store(chunks);
    MutexLock lock(mutex_);
    if (thrown_ == nullptr) thrown_ = std::current_exception();
  }
}

void ThreadPool::Run(int64_t chunks, Trampoline call, const void* body) {
  const Loop loop{call, body, Running::Current()};
  {
    MutexLock lock(mutex_);
    call_ = RunChunk;
    body_ = &loop;
    chunks_ = chunks;
    next_.store(0);
    ++generation_;
    busy_ = static_cast<int>(workers_.size());
  }
  wake_.NotifyAll();
  Drain(call, body, chunks);
  std::exception_ptr thrown;
  {
    MutexLock lock(mutex_);
    while (busy_ != 0) done_.Wait(mutex_);
    thrown = std::exchange(thrown_, nullptr);
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void ThreadPool::Work() {
  const ScopedFlushDenormals flush;
  uint64_t seen = 0;
  while (true) {
    Trampoline call;
    const void* body;
    int64_t chunks;
    {
      MutexLock lock(mutex_);
      while (!stop_ && generation_ == seen) wake_.Wait(mutex_);
      if (stop_) return;
      seen = generation_;
      call = call_;
      body = body_;
      chunks = chunks_;
    }
    Drain(call, body, chunks);
    MutexLock lock(mutex_);
    if (--busy_ == 0) done_.NotifyOne();
  }
}

}  // namespace floe
