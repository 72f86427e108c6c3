// Conversions of sockaddr to text.
#include "server/listener/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

std::string UnixName(const sockaddr_un& address, socklen_t size) {
  const size_t length = size - offsetof(sockaddr_un, sun_path);
  if (size <= offsetof(sockaddr_un, sun_path)) return "";
  if (address.sun_path[0] == '\0')
    return absl::StrCat("unix-abstract:", std::string(address.sun_path + 1, length - 1));
  return absl::StrCat("unix:", std::string(address.sun_path, strnlen(address.sun_path, length)));
}

}  // namespace

std::string HostOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    constexpr size_t kV4At = 12;  // RFC 4291, 2.5.5.2
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, v6.sin6_addr.s6_addr + kV4At, text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    }
  }
  return text;
}

uint16_t PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

std::string LocalAddress(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.ss_family == AF_UNIX)
    return UnixName(reinterpret_cast<const sockaddr_un&>(address), size);
  if (address.ss_family == AF_INET)
    return absl::StrCat(HostOf(address), ":",
                        ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port));
  char text[INET6_ADDRSTRLEN] = "", link[IF_NAMESIZE] = "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  const std::string scope = v6.sin6_scope_id == 0 ? ""
                            : if_indextoname(v6.sin6_scope_id, link) != nullptr
                                ? absl::StrCat("%", link)
                                : absl::StrCat("%", v6.sin6_scope_id);
  return absl::StrCat("[", text, scope, "]:", ntohs(v6.sin6_port));
}

}  // namespace floe::server
