// Mailbox: what other threads have to tell one thread, which runs it.
#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace floe::server {

// Threading: any thread posts, one takes.
class Mailbox {
 public:
  using Letter = std::function<void()>;

  // False, and the letter is dropped, after Close.
  bool Post(Letter letter);
  // Waits until there is something or `deadline` has come; max(): only the former. Empty also after
  // Close.
  std::vector<Letter> Take(TimePoint deadline);
  void Close();
  bool closed() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Letter> letters_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace floe::server
