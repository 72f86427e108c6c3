#include "base/message_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"

namespace floe {
namespace {

// A message with a file, as unix(7) describes it.
union FileMessage {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr header;
};

void AddFile(int file, FileMessage* control, msghdr* message) {
  message->msg_control = control->bytes;
  message->msg_controllen = sizeof(control->bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(file));
  std::memcpy(CMSG_DATA(header), &file, sizeof(file));
}

OwnedFd FileOf(msghdr* message) {
  const cmsghdr* const header = CMSG_FIRSTHDR(message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int)))
    return OwnedFd();
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof(file));
  return OwnedFd(file);
}

absl::Status Over(ssize_t result) {
  if (result == 0 || errno == EPIPE || errno == ECONNRESET)
    return absl::UnavailableError("the other side has ended");
  return absl::ErrnoToStatus(errno, "socket");
}

}  // namespace

absl::Status WaitForSocket(int socket, short events) {
  pollfd ready{socket, events, 0};
  if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  return absl::OkStatus();
}

absl::Status SendBytes(int socket, const void* bytes, size_t size, const SocketWait& wait,
                       int file) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    iovec part{const_cast<char*>(at), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    FileMessage control{};
    if (file >= 0) AddFile(file, &control, &message);
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      file = -1;
      at += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FLOE_RETURN_IF_ERROR(wait(socket, POLLOUT));
    } else if (errno != EINTR) {
      return Over(sent);
    }
  }
  return absl::OkStatus();
}

absl::Status ReceiveBytes(int socket, void* bytes, size_t size, const SocketWait& wait,
                          OwnedFd* file) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    iovec part{at, size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    FileMessage control{};
    if (file != nullptr) {
      message.msg_control = control.bytes;
      message.msg_controllen = sizeof(control.bytes);
    }
    const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
      if (file != nullptr && message.msg_controllen > 0) *file = FileOf(&message);
      at += got;
      size -= static_cast<size_t>(got);
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      FLOE_RETURN_IF_ERROR(wait(socket, POLLIN));
    } else if (got == 0 || errno != EINTR) {
      return Over(got);
    }
  }
  return absl::OkStatus();
}

}  // namespace floe
