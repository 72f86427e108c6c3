#include "kernels/cuda/emulator.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cuda/fiber.h"
#include "kernels/cuda/kernel_list.h"

constinit thread_local floe::cuda::Dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace floe::cuda {
namespace {

constexpr int kWarp = 32;

// Keeps denormals while in scope, on x86-64; elsewhere they are kept by default.
class ScopedKeepDenormals {
 public:
#if defined(__x86_64__)
  ScopedKeepDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ & ~0x8040u); }
  ~ScopedKeepDenormals() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  ScopedKeepDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(saved_ & ~(uint64_t{1} << 24)));
  }
  ~ScopedKeepDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  ScopedKeepDenormals() = default;
#endif
  ScopedKeepDenormals(const ScopedKeepDenormals&) = delete;
  ScopedKeepDenormals& operator=(const ScopedKeepDenormals&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#elif defined(__aarch64__)
  uint64_t saved_ = 0;
#endif
};

EmulatorOptions OptionsOfEnvironment() {
  EmulatorOptions options;
  const char* const text = std::getenv("FLOE_EMULATOR_ORDER");
  const std::string order = text == nullptr ? "" : text;
  if (order == "backward") options.order = EmulatorOrder::kBackward;
  if (order.rfind("shuffled", 0) == 0) {
    options.order = EmulatorOrder::kShuffled;
    if (!absl::SimpleAtoi(order.substr(std::min<size_t>(order.size(), 9)), &options.seed)) {
      options.seed = 1;
    }
  }
  return options;
}

EmulatorOptions& TheOptions() {
  static const EmulatorOptions of_environment = OptionsOfEnvironment();
  static thread_local EmulatorOptions options = of_environment;
  return options;
}

enum class ThreadState : uint8_t { kNew, kReady, kAtBlock, kAtWarp, kDone };

struct Copy {
  void* to;
  const void* from;
  bool valid;
  int bytes;
  int group;
};

void CopyNow(const Copy& copy) {
  const auto bytes = static_cast<size_t>(copy.bytes);
  if (copy.valid) {
    std::memcpy(copy.to, copy.from, bytes);
  } else {
    std::memset(copy.to, 0, bytes);
  }
}

// What a lane brings to a product of its warp.
struct MmaOperands {
  bool bf16;
  const uint32_t *a, *b;
  float* c;
};

// By the places that PTX gives the lanes' elements.
void MultiplyInWarp(const MmaOperands* const (&lanes)[kWarp]) {
  const bool bf16 = lanes[0]->bf16;
  const int depth = bf16 ? 16 : 8;
  const auto number = [&](const uint32_t* at, int i, int part) {
    const uint32_t bits = bf16 ? at[i] >> (16 * part) << 16 : at[i];
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  };
  float a[16][16] = {}, b[16][8] = {};
  for (int lane = 0; lane < kWarp; ++lane) {
    const int group = lane / 4, each = bf16 ? 2 : 1;
    for (int part = 0; part < each; ++part) {
      const int k = lane % 4 * each + part;
      for (int i = 0; i < 4; ++i)
        a[group + i % 2 * 8][k + i / 2 * depth / 2] = number(lanes[lane]->a, i, part);
      for (int i = 0; i < 2; ++i) b[k + i * depth / 2][group] = number(lanes[lane]->b, i, part);
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float& sum = lanes[lane]->c[i];
      for (int k = 0; k < depth; ++k) sum = __builtin_fmaf(a[row][k], b[k][column], sum);
    }
  }
}

struct Thread {
  ThreadState state = ThreadState::kNew;
  bool waited = false;
  Fiber* fiber = nullptr;
  CodePlace place = {};  // of the barrier where it waits
  // Of the warp's barrier where it waits: its mask, and what is exchanged there.
  uint32_t mask = 0;
  int source = 0;
  uint64_t gave = 0, got = 0;
  const MmaOperands* mma = nullptr;
  // Asynchronous copies that are to be made, and the number of the group of those to come.
  std::vector<Copy> copies;
  int group = 0;
};

bool Same(const CodePlace& a, const CodePlace& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::vector<std::max_align_t> CopyOf(const void* args, int bytes) {
  std::vector<std::max_align_t> copy(static_cast<size_t>(bytes) / sizeof(std::max_align_t) + 1);
  std::memcpy(copy.data(), args, static_cast<size_t>(bytes));
  return copy;
}

// The threads of one block after the other. Those that never wait share a fiber.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  absl::Status RunAll(const KernelEntry& kernel, Dim3 grid, const void* args,
                      const EmulatorOptions& options);

  // For the running thread.
  Thread& current() { return threads_[current_]; }
  void* SharedArrayOf(const void* site, size_t bytes);
  void Wait(ThreadState at, CodePlace place);
  // The block ends when the thread waits or ends.
  void Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }
  bool CopiesEarly() {
    return options_.order == EmulatorOrder::kBackward ||
           (options_.order == EmulatorOrder::kShuffled && random_() % 2 == 0);
  }

 private:
  struct Shared {
    const void* site;
    std::unique_ptr<char[]> data;
    bool used;  // by this block
  };

  static void FiberMain(void* block) { static_cast<Block*>(block)->BeginThreads(); }
  void BeginThreads();
  void RunOne();
  void RunThreads(size_t first, size_t last);
  void Resume(Fiber* fiber);
  Fiber* NewFiber();
  void SetThread(unsigned thread);
  bool ReleaseBlock();
  bool ReleaseWarps();
  bool IsComplete(unsigned waiting) const;
  std::string Stuck() const;
  void Order(std::vector<unsigned>* items);

  void (*kernel_)(const void*) = nullptr;
  const void* args_ = nullptr;
  EmulatorOptions options_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<unsigned> order_;  // in which they run
  size_t next_ = 0;              // of order_: who has not begun
  size_t begin_before_ = 0;      // of order_: who may not begin yet
  size_t done_ = 0;
  unsigned current_ = 0;
  Fiber scheduler_;
  Fiber* active_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Shared> shared_;
  std::string error_;
};

// Of the host thread; its stacks are kept for the next kernel.
Block& TheBlock() {
  static thread_local Block block;
  return block;
}

void* Block::SharedArrayOf(const void* site, size_t bytes) {
  Shared* found = nullptr;
  for (Shared& shared : shared_) found = shared.site == site ? &shared : found;
  if (found == nullptr) {
    shared_.push_back({site, std::make_unique<char[]>(bytes), false});
    found = &shared_.back();
  }
  if (!found->used) std::memset(found->data.get(), 0xff, bytes);  // NaN, and -1
  found->used = true;
  return found->data.get();
}

void Block::SetThread(unsigned thread) {
  current_ = thread;
  threadIdx = {thread, 0, 0};
}

// On a fiber: runs threads that have not begun until one waits. From then on the fiber is that
// thread's alone, and another begins the next.
void Block::BeginThreads() {
  Fiber* const self = active_;
  while (next_ < begin_before_ && error_.empty()) {
    const unsigned thread = order_[next_++];
    SetThread(thread);
    threads_[thread].fiber = self;
    kernel_(args_);
    threads_[thread].state = ThreadState::kDone;
    ++done_;
    if (!threads_[thread].copies.empty()) Fail("a thread ends before its copies");
    if (threads_[thread].waited) break;
  }
  idle_.push_back(self);
  Fiber::Leave(self, &scheduler_);
}

void Block::Wait(ThreadState at, CodePlace place) {
  Thread& thread = current();
  thread.state = at;
  thread.place = place;
  thread.waited = true;
  Fiber::Switch(thread.fiber, &scheduler_);
}

void Block::Resume(Fiber* fiber) {
  active_ = fiber;
  Fiber::Switch(&scheduler_, fiber);
}

Fiber* Block::NewFiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&FiberMain, this));
    return fibers_.back().get();
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  fiber->Restart();
  return fiber;
}

bool Block::ReleaseBlock() {
  const CodePlace place = threads_[0].place;
  for (const Thread& thread : threads_) {
    if (thread.state != ThreadState::kAtBlock || !Same(thread.place, place)) return false;
  }
  for (Thread& thread : threads_) thread.state = ThreadState::kReady;
  return true;
}

// Whether all threads of the mask wait where this one does.
bool Block::IsComplete(unsigned waiting) const {
  const Thread& one = threads_[waiting];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((one.mask >> lane & 1) == 0) continue;
    const Thread& other = threads_[waiting / kWarp * kWarp + lane];
    if (other.state != ThreadState::kAtWarp || other.mask != one.mask ||
        !Same(other.place, one.place)) {
      return false;
    }
  }
  return true;
}

bool Block::ReleaseWarps() {
  bool released = false;
  for (unsigned t = 0; t < threads_.size(); ++t) {
    if (threads_[t].state != ThreadState::kAtWarp || !IsComplete(t)) continue;
    Thread* const warp = &threads_[t / kWarp * kWarp];
    const uint32_t mask = threads_[t].mask;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) != 0) warp[lane].got = warp[warp[lane].source].gave;
    }
    if (warp[0].mma != nullptr) {
      const MmaOperands* lanes[kWarp];
      for (unsigned lane = 0; lane < kWarp; ++lane)
        lanes[lane] = std::exchange(warp[lane].mma, nullptr);
      MultiplyInWarp(lanes);
    }
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) != 0) warp[lane].state = ThreadState::kReady;
    }
    released = true;
  }
  return released;
}

std::string Block::Stuck() const {
  std::map<std::string, int> where;
  for (const Thread& thread : threads_) {
    const std::string place =
        thread.place.file == nullptr ? "" : absl::StrCat(thread.place.file, ":", thread.place.line);
    if (thread.state == ThreadState::kAtBlock)
      ++where[absl::StrCat("wait at __syncthreads of ", place)];
    if (thread.state == ThreadState::kAtWarp) {
      ++where[absl::StrCat("wait for the lanes 0x", absl::Hex(thread.mask), " at ", place)];
    }
    if (thread.state == ThreadState::kDone) ++where["have ended"];
  }
  std::vector<std::string> parts;
  parts.reserve(where.size());
  for (const auto& [what, count] : where) parts.push_back(absl::StrCat(count, " ", what));
  return absl::StrCat("of ", threads_.size(), " threads ", absl::StrJoin(parts, ", "));
}

void Block::RunOne() {
  for (Thread& thread : threads_) {
    thread.state = ThreadState::kNew;
    thread.waited = false;
    thread.group = 0;
    thread.mma = nullptr;
    thread.copies.clear();
  }
  for (Shared& shared : shared_) shared.used = false;
  idle_.clear();
  for (const auto& fiber : fibers_) idle_.push_back(fiber.get());
  next_ = 0;
  done_ = 0;
  // All threads go on together from one barrier of their warps to the next, or each warp as far as
  // it can alone: a race may show in one of the two.
  const bool together = options_.order == EmulatorOrder::kShuffled;
  const size_t step = together ? order_.size() : kWarp;
  while (error_.empty()) {
    bool warps = false;
    for (size_t first = 0; first < order_.size(); first += step) {
      RunThreads(first, first + step);
      while (!together && error_.empty() && ReleaseWarps()) RunThreads(first, first + step);
    }
    if (done_ == threads_.size() || !error_.empty()) return;
    if (together) warps = ReleaseWarps();
    if (!ReleaseBlock() && !warps) Fail(Stuck());
  }
}

// Those of order_, until each waits or has ended.
void Block::RunThreads(size_t first, size_t last) {
  begin_before_ = last;
  while (next_ < last && error_.empty()) Resume(NewFiber());
  for (size_t i = first; i < last && error_.empty(); ++i) {
    if (threads_[order_[i]].state != ThreadState::kReady) continue;
    SetThread(order_[i]);
    Resume(threads_[order_[i]].fiber);
  }
}

void Block::Order(std::vector<unsigned>* items) {
  std::iota(items->begin(), items->end(), 0u);
  if (options_.order == EmulatorOrder::kBackward) std::reverse(items->begin(), items->end());
  if (options_.order == EmulatorOrder::kShuffled)
    std::shuffle(items->begin(), items->end(), random_);
}

absl::Status Block::RunAll(const KernelEntry& kernel, Dim3 grid, const void* args,
                           const EmulatorOptions& options) {
  const ScopedKeepDenormals keep;
  const std::vector<std::max_align_t> copy = CopyOf(args, kernel.args_bytes);
  kernel_ = reinterpret_cast<void (*)(const void*)>(const_cast<void*>(kernel.function));
  args_ = copy.data();
  options_ = options;
  random_.seed(options.seed);
  error_.clear();
  shared_.clear();
  threads_.resize(static_cast<size_t>(kernel.threads));
  order_.resize(threads_.size());
  blockDim = {static_cast<uint32_t>(kernel.threads), 1, 1};
  gridDim = grid;
  std::vector<unsigned> blocks(size_t{grid.x} * grid.y * grid.z);
  Order(&blocks);
  Order(&order_);
  for (const unsigned block : blocks) {
    blockIdx = {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y};
    if (options.order == EmulatorOrder::kShuffled) Order(&order_);
    RunOne();
    if (!error_.empty()) {
      return absl::InternalError(absl::StrCat("kernel ", kernel.name, ", block ", blockIdx.x, ", ",
                                              blockIdx.y, ", ", blockIdx.z, ": ", error_));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Emulate(const KernelEntry& kernel, Dim3 grid, const void* args) {
  // What cudaLaunchKernel refuses.
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    return absl::InternalError(absl::StrCat("kernel ", kernel.name, ": no GPU runs a grid of ",
                                            grid.x, " x ", grid.y, " x ", grid.z, " blocks"));
  }
  if (kernel.threads <= 0 || kernel.threads > 1024 || kernel.threads % kWarp != 0) {
    return absl::InternalError(absl::StrCat("kernel ", kernel.name, ": blocks of ", kernel.threads,
                                            " threads are not made of warps"));
  }
  return TheBlock().RunAll(kernel, grid, args, GetEmulatorOptions());
}

void SetEmulatorOptions(const EmulatorOptions& options) { TheOptions() = options; }
EmulatorOptions GetEmulatorOptions() { return TheOptions(); }

bool HasFma() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("fma") != 0;
  return has;
#else
  return true;
#endif
}

void* SharedArray(const void* site, size_t bytes) { return TheBlock().SharedArrayOf(site, bytes); }

void EmulateCopy(void* to, const void* from, bool valid, int bytes) {
  Block& block = TheBlock();
  Thread& thread = block.current();
  const Copy copy = {to, from, valid, bytes, thread.group};
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes != 0) {
    block.Fail(absl::StrCat("a copy of ", bytes, " bytes is not aligned to them"));
  } else if (block.CopiesEarly()) {
    CopyNow(copy);
  } else {
    thread.copies.push_back(copy);
  }
}
void EmulateCommit() { ++TheBlock().current().group; }
void EmulateWait(int groups) {
  Thread& thread = TheBlock().current();
  size_t made = 0;
  while (made < thread.copies.size() && thread.copies[made].group < thread.group - groups) {
    CopyNow(thread.copies[made++]);
  }
  thread.copies.erase(thread.copies.begin(),
                      thread.copies.begin() + static_cast<std::ptrdiff_t>(made));
}

void SyncBlock(CodePlace place) { TheBlock().Wait(ThreadState::kAtBlock, place); }

void EmulateMma(bool bf16, const uint32_t (&a)[4], const uint32_t (&b)[2], float (&c)[4],
                CodePlace place) {
  Block& block = TheBlock();
  const MmaOperands operands = {bf16, a, b, c};
  for (int i = 0; i < 6 && !bf16; ++i) {
    if (((i < 4 ? a[i] : b[i - 4]) & 0x1fffu) != 0 && (i < 4 ? a[i] : b[i - 4]) != 0x7fffffffu)
      block.Fail("a factor of a product is not rounded to TF32");
  }
  block.current().mma = &operands;
  ExchangeInWarp(0xffffffffu, 0, 0, place);
}

uint64_t ExchangeInWarp(uint32_t mask, uint64_t mine, int source, CodePlace place) {
  Block& block = TheBlock();
  Thread& thread = block.current();
  const unsigned lane = threadIdx.x % kWarp;
  if ((mask >> lane & 1) == 0 || (mask >> source & 1) == 0) {
    block.Fail(absl::StrCat("lane ", lane, " asks lane ", source, " among the lanes 0x",
                            absl::Hex(mask), " at ", place.file, ":", place.line));
  }
  thread.mask = mask;
  thread.gave = mine;
  thread.source = source;
  block.Wait(ThreadState::kAtWarp, place);
  return block.current().got;
}

}  // namespace floe::cuda
