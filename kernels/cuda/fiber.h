// A stack of its own to run a function on: what the emulator makes the threads of a block of.
#pragma once

#include <cstddef>
#include <memory>

namespace floe::cuda {

// Threading: a fiber and those that it switches to belong to one host thread.
class Fiber {
 public:
  // That of the calling host thread, to come back to.
  Fiber();
  // Runs `main(arg)` when it is first switched to. `main` must not return: it ends by Leave.
  Fiber(void (*main)(void*), void* arg);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Begins again, by `main`: what it was doing is dropped.
  void Restart();
  // Goes on with `next`; `from` is the running one. Returns when something switches to `from`.
  static void Switch(Fiber* from, Fiber* next);
  // As Switch, but `from` will not be switched to before Restart.
  static void Leave(Fiber* from, Fiber* next);

 private:
  struct State;
  static void Main();
  static void Jump(Fiber* from, Fiber* next, bool leave);
  std::unique_ptr<State> state_;
};

}  // namespace floe::cuda
