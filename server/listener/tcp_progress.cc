// TCP_INFO of a socket.
#include "server/listener/tcp_progress.h"

// The kernel's own header: the C library's tcp_info ends before the field, and the two cannot be
// included together.
#include <linux/tcp.h>
#include <sys/socket.h>

namespace floe::server {

int64_t BytesAcknowledged(int fd) {
  constexpr int kTcp = 6;  // IPPROTO_TCP
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (getsockopt(fd, kTcp, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_acked);
}

}  // namespace floe::server
