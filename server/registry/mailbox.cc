#include "server/registry/mailbox.h"

#include <utility>

namespace floe::server {

bool Mailbox::Post(Letter letter) {
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    letters_.push_back(std::move(letter));
  }
  changed_.NotifyAll();
  return true;
}

std::vector<Mailbox::Letter> Mailbox::Take(TimePoint deadline) {
  std::vector<Letter> taken;
  MutexLock lock(mutex_);
  while (letters_.empty() && !closed_) {
    if (deadline == TimePoint::max()) {
      changed_.Wait(mutex_);
    } else if (!changed_.WaitUntil(mutex_, deadline)) {
      break;
    }
  }
  taken.swap(letters_);
  return taken;
}

void Mailbox::Close() {
  std::vector<Letter> dropped;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(letters_);
  }
  changed_.NotifyAll();
}

bool Mailbox::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace floe::server
