// Opens listening sockets of each kind, and removes what they leave behind.
#include "server/listener/listen_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/listener/socket_address.h"

namespace floe::server {
namespace {

// As many connections as the kernel lets wait (net.core.somaxconn cuts it).
constexpr int kBacklog = 4096;

absl::Status CannotListen(const std::string& listener, int error) {
  std::string why = std::strerror(error);
  if (error == EADDRINUSE) why = "the address is in use";
  if (error == EADDRNOTAVAIL) why = "the address is not this machine's";
  if (error == EACCES)
    why =
        listener.starts_with("unix:")
            ? "this user may not make files in its directory, as the directory's owner and mode say"
            : "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE";

  return absl::UnavailableError(absl::StrCat("cannot listen on ", listener, ": ", why));
}

absl::Status Malformed(const std::string& listener) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", listener,
                   "' is no listener; expected host:port, [address]:port, unix:/path, "
                   "unix-abstract:name or fd:number"));
}

// Bound and listening, or -1 with errno set.
int Bind(const sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  if (address->sa_family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // "[::]" takes both families.
  if (address->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, address, size) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// A socket file that nobody listens at: its server ended without removing it.
bool IsStale(const sockaddr_un& address, socklen_t size) {
  struct stat info;
  if (lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const bool refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 && errno == ECONNREFUSED;
  close(fd);
  return refused;
}

absl::StatusOr<int> BindUnix(const std::string& listener, const std::string& name, bool abstract) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t skipped = abstract ? 1 : 0;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path)
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", listener, ": a name of ",
                                                   name.size(), " bytes, expected 1 to ",
                                                   sizeof address.sun_path - 1));
  name.copy(address.sun_path + skipped, name.size());
  // The name of an abstract socket ends where the address ends; that of a file, with its NUL.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  int fd = Bind(plain, size);
  if (fd < 0 && errno == EADDRINUSE && !abstract && IsStale(address, size)) {
    unlink(address.sun_path);
    fd = Bind(plain, size);
  }
  if (fd < 0) return CannotListen(listener, errno);
  return fd;
}

absl::StatusOr<int> BindTcp(const std::string& listener) {
  const size_t colon = listener.rfind(':');
  if (colon == std::string::npos || colon == 0) return Malformed(listener);
  std::string host = listener.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), listener.c_str() + colon + 1, &hints, &found);
      error != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", listener, ": ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (const int fd = Bind(a->ai_addr, a->ai_addrlen); fd >= 0) return fd;
    error = errno;
  }
  return CannotListen(listener, error);
}

absl::StatusOr<int> Inherited(const std::string& listener, const std::string& number) {
  int fd = -1, listening = 0, type = 0;
  socklen_t size = sizeof listening;
  const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), fd);
  if (wrong != std::errc() || end != number.data() + number.size() || fd < 0)
    return Malformed(listener);
  const bool known = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 &&
                     getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
  if (!known || listening == 0 || type != SOCK_STREAM)
    return absl::UnavailableError(absl::StrCat("cannot listen on ", listener,
                                               ": not a listening stream socket; the unit needs "
                                               "ListenStream= with Accept=no"));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

bool TakePrefix(const std::string& text, const std::string& prefix, std::string* rest) {
  if (text.compare(0, prefix.size(), prefix) != 0) return false;
  *rest = text.substr(prefix.size());
  return true;
}

}  // namespace

absl::StatusOr<ListenSocket> ListenSocket::Open(const std::string& listener) {
  std::string rest;
  if (TakePrefix(listener, "unix:", &rest)) {
    FLOE_ASSIGN_OR_RETURN(const int fd, BindUnix(listener, rest, /*abstract=*/false));
    ListenSocket socket(fd, listener);
    socket.file_ = rest;
    return socket;
  }
  if (TakePrefix(listener, "unix-abstract:", &rest)) {
    FLOE_ASSIGN_OR_RETURN(const int fd, BindUnix(listener, rest, /*abstract=*/true));
    return ListenSocket(fd, listener);
  }
  if (TakePrefix(listener, "fd:", &rest)) {
    FLOE_ASSIGN_OR_RETURN(const int fd, Inherited(listener, rest));
    ListenSocket socket(fd, LocalAddress(fd));
    socket.inherited_ = true;
    return socket;
  }
  FLOE_ASSIGN_OR_RETURN(const int fd, BindTcp(listener));
  return ListenSocket(fd, LocalAddress(fd));
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept { *this = std::move(other); }

ListenSocket& ListenSocket::operator=(ListenSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(file_, other.file_);
  std::swap(inherited_, other.inherited_);
  return *this;
}

void ListenSocket::Close() {
  if (fd_ < 0) return;
  // Before the close: afterwards the file may be another server's.
  if (!file_.empty()) unlink(file_.c_str());
  close(std::exchange(fd_, -1));
}

}  // namespace floe::server
