#include "server/daemon/listeners.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace floe::server {
namespace {

// What may stand in a URI's path as it is (RFC 3986), slashes included.
std::string PercentEscaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || std::strchr("/-._~", c) != nullptr) {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace

std::string HostPort(const std::string& host, int64_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host[0] != '[';
  return bare_v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

std::vector<std::string> ListenAddresses(const ListenConfig& config) {
  std::vector<std::string> addresses;
  if (config.port != 0) addresses.push_back(HostPort(config.bind_address, config.port));
  const std::string& path = config.grpc_socket_path;
  if (!path.empty())
    addresses.push_back(path[0] == '@' ? "unix-abstract:" + path.substr(1) : "unix:" + path);
  return addresses;
}

std::vector<std::string> DescribeListeners(const ListenConfig& config) {
  std::vector<std::string> lines;
  if (config.port != 0) {
    const bool loopback = IsLoopback(config.bind_address);
    lines.push_back(absl::StrCat(
        "listening on ", HostPort(config.bind_address, config.port), " (gRPC, plain text",
        loopback
            ? "; this machine only: --bind_address=0.0.0.0 --insecure_public opens it to others)"
            : "; open to other machines)"));
  }
  if (!config.grpc_socket_path.empty())
    lines.push_back(absl::StrCat("listening on unix socket ", config.grpc_socket_path, " (gRPC)"));
  return lines;
}

std::vector<std::string> DescribeActivated(const std::vector<std::string>& bound) {
  std::vector<std::string> lines;
  lines.reserve(bound.size());
  for (const std::string& address : bound)
    lines.push_back(absl::StrCat("listening on ", address,
                                 " (gRPC, plain text), a socket of the service manager; port, "
                                 "bind_address and grpc_socket_path have no effect"));
  return lines;
}

std::vector<std::string> ActivatedListeners() {
  const int count = std::max(0, sd_listen_fds(/*unset_environment=*/1));
  std::vector<std::string> listeners(count);
  for (int i = 0; i < count; ++i) listeners[i] = absl::StrCat("fd:", SD_LISTEN_FDS_START + i);
  return listeners;
}

std::string ProbeAddress(const std::string& bound, bool ipv6) {
  for (const std::string scheme : {"unix:", "unix-abstract:"})
    if (bound.compare(0, scheme.size(), scheme) == 0)
      return scheme + PercentEscaped(bound.substr(scheme.size()));
  const size_t colon = bound.rfind(':');
  const std::string host = bound.substr(0, colon), port = bound.substr(colon);
  if (host == "0.0.0.0") return "127.0.0.1" + port;
  if (host == "[::]") return (ipv6 ? "[::1]" : "127.0.0.1") + port;
  // The scope of a link's own address makes it no host name.
  if (host.find('%') != std::string::npos) return "ipv6:" + PercentEscaped(host) + port;
  return bound;
}

bool HasIpv6Loopback() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return has;
}

}  // namespace floe::server
