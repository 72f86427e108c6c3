// Whole blocks of bytes over a socket between two processes that take turns.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/owned_fd.h"

namespace floe {

// Called when nothing can be sent (POLLOUT) or received (POLLIN) at once. OK: it is tried again.
using SocketWait = std::function<absl::Status(int socket, short events)>;

// As long as it takes.
absl::Status WaitForSocket(int socket, short events);

// All `size` bytes. UNAVAILABLE: the other side has ended. Or what `wait` says. `file` is sent with
// them, unless it is -1. Threading: one thread at a time.
absl::Status SendBytes(int socket, const void* bytes, size_t size, const SocketWait& wait,
                       int file = -1);

// The same the other way. A file that comes with the bytes is dropped unless `file` wants it.
absl::Status ReceiveBytes(int socket, void* bytes, size_t size, const SocketWait& wait,
                          OwnedFd* file = nullptr);

}  // namespace floe
