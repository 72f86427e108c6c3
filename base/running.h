// Running: what a thread works on, for the report of a crash.
#pragma once

#include <cstddef>

namespace floe {

class Running {
 public:
  virtual ~Running() = default;
  // Writes at most `size` bytes of text and returns how many. Async-signal-safe, since it is called
  // when a thread has crashed: no allocation, no locks.
  virtual size_t Describe(char* text, size_t size) const = 0;

  // What this thread works on; null: nothing known.
  static const Running* Current() { return current_; }

  // Names what this thread works on until the scope ends. Scopes nest.
  class Scope {
   public:
    explicit Scope(const Running* work) : outer_(current_) { current_ = work; }
    ~Scope() { current_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const Running* const outer_;
  };

 private:
  inline static thread_local const Running* current_ = nullptr;
};

}  // namespace floe
