#include "kernels/cuda/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define FLOE_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FLOE_FIBER_ASAN 1
#elif __has_feature(thread_sanitizer)
#define FLOE_FIBER_TSAN 1
#endif
#endif
#if defined(FLOE_FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(FLOE_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__x86_64__) && !defined(FLOE_FIBER_BY_UCONTEXT)
#define FLOE_FIBER_BY_ASM 1
#else
#include <ucontext.h>
#endif

namespace floe::cuda {
namespace {

#if defined(FLOE_SANITIZED) || defined(FLOE_FIBER_ASAN)
constexpr size_t kStackBytes = 512 << 10;  // unoptimised frames with gaps around every object
#else
constexpr size_t kStackBytes = 128 << 10;
#endif

size_t PageBytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

#if defined(FLOE_FIBER_BY_ASM)
// Saves what a call keeps on the running stack, and goes on where the other stack left off.
extern "C" void floe_switch_stack(void** save, void* load);
asm(R"(
.text
.globl floe_switch_stack
.hidden floe_switch_stack
.type floe_switch_stack,@function
floe_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size floe_switch_stack,.-floe_switch_stack
)");
#endif

struct Fiber::State {
  void (*main)(void*) = nullptr;
  void* arg = nullptr;
  char* stack = nullptr;  // null: the host thread's
#if defined(FLOE_FIBER_BY_ASM)
  void* at = nullptr;
#else
  ucontext_t at;
#endif
#if defined(FLOE_FIBER_ASAN)
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  size_t bytes = 0;
#elif defined(FLOE_FIBER_TSAN)
  void* tsan = nullptr;
#endif
};

// Of the host thread: who switched, and to whom, for the first lines of a fiber.
static thread_local Fiber* switched_from = nullptr;
static thread_local Fiber* switched_to = nullptr;

Fiber::Fiber() : state_(std::make_unique<State>()) {
#if defined(FLOE_FIBER_TSAN)
  state_->tsan = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*main)(void*), void* arg) : state_(std::make_unique<State>()) {
  state_->main = main;
  state_->arg = arg;
  void* const stack = mmap(nullptr, PageBytes() + kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) throw std::bad_alloc();
  mprotect(stack, PageBytes(), PROT_NONE);  // an overflow ends the process instead of another stack
  state_->stack = static_cast<char*>(stack) + PageBytes();
#if defined(FLOE_FIBER_ASAN)
  state_->bottom = state_->stack;
  state_->bytes = kStackBytes;
#elif defined(FLOE_FIBER_TSAN)
  state_->tsan = __tsan_create_fiber(0);
#endif
  Restart();
}

Fiber::~Fiber() {
  if (state_->stack == nullptr) return;
#if defined(FLOE_FIBER_ASAN)
  __asan_unpoison_memory_region(state_->stack, kStackBytes);
#elif defined(FLOE_FIBER_TSAN)
  __tsan_destroy_fiber(state_->tsan);
#endif
  munmap(state_->stack - PageBytes(), PageBytes() + kStackBytes);
}

void Fiber::Restart() {
#if defined(FLOE_FIBER_ASAN)
  __asan_unpoison_memory_region(state_->stack, kStackBytes);
  state_->fake_stack = nullptr;
#endif
#if defined(FLOE_FIBER_BY_ASM)
  auto** top = reinterpret_cast<void**>(state_->stack + kStackBytes);
  *--top = nullptr;  // Main's return address: it has none, and is aligned as behind a call
  *--top = reinterpret_cast<void*>(&Fiber::Main);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  state_->at = top;
#else
  getcontext(&state_->at);
  state_->at.uc_stack.ss_sp = state_->stack;
  state_->at.uc_stack.ss_size = kStackBytes;
  state_->at.uc_link = nullptr;
  makecontext(&state_->at, &Fiber::Main, 0);
#endif
}

void Fiber::Main() {
#if defined(FLOE_FIBER_ASAN)
  State& from = *switched_from->state_;
  __sanitizer_finish_switch_fiber(nullptr, &from.bottom, &from.bytes);
#endif
  const State& self = *switched_to->state_;
  self.main(self.arg);
  __builtin_trap();
}

void Fiber::Switch(Fiber* from, Fiber* next) { Jump(from, next, false); }
void Fiber::Leave(Fiber* from, Fiber* next) { Jump(from, next, true); }

void Fiber::Jump(Fiber* from, Fiber* next, bool leave) {
  switched_from = from;
  switched_to = next;
#if defined(FLOE_FIBER_ASAN)
  __sanitizer_start_switch_fiber(leave ? nullptr : &from->state_->fake_stack, next->state_->bottom,
                                 next->state_->bytes);
#elif defined(FLOE_FIBER_TSAN)
  __tsan_switch_to_fiber(next->state_->tsan, 0);
#endif
  (void)leave;
#if defined(FLOE_FIBER_BY_ASM)
  floe_switch_stack(&from->state_->at, next->state_->at);
#else
  swapcontext(&from->state_->at, &next->state_->at);
#endif
#if defined(FLOE_FIBER_ASAN)
  State& last = *switched_from->state_;
  __sanitizer_finish_switch_fiber(from->state_->fake_stack, &last.bottom, &last.bytes);
#endif
}

}  // namespace floe::cuda
