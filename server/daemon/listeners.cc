// Addresses from the configuration or from the service manager, and their lines in the log.
#include "server/daemon/listeners.h"

#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace floe::server {
namespace {

ListenerRoles RolesOf(const ListenConfig& config) {
  ListenerRoles roles;
  switch (config.enable_config_rpcs) {
    case ConfigRpcs::kNobody:
      roles.admin = OfferedTo::kNobody;
      break;
    case ConfigRpcs::kLocal:
      // Behind a proxy of this machine everybody is local, so a listener of their own is enough.
      roles.admin = config.admin_socket_path.empty() ? OfferedTo::kLocal : OfferedTo::kNobody;
      break;
    case ConfigRpcs::kAll:
      roles.admin = OfferedTo::kAll;
      break;
  }
  return roles;
}

// All of them serve all of it.
std::vector<int64_t> PortsOf(const ListenConfig& config) {
  std::vector<int64_t> ports;
  if (config.port != 0) ports.push_back(config.port);
  if (config.http_port != 0 && config.http_port != config.port) ports.push_back(config.http_port);
  return ports;
}

std::string SocketAddress(const std::string& path) {
  return path[0] == '@' ? "unix-abstract:" + path.substr(1) : "unix:" + path;
}

std::vector<std::string> AddressesOf(const ListenConfig& config) {
  std::vector<std::string> addresses;
  for (const int64_t port : PortsOf(config))
    addresses.push_back(HostPort(config.bind_address, port));
  if (!config.grpc_socket_path.empty()) addresses.push_back(SocketAddress(config.grpc_socket_path));
  return addresses;
}

std::string DescribeAdmin(const ListenConfig& config) {
  return absl::StrCat("listening on unix socket ", config.admin_socket_path,
                      " (gRPC and REST, for operators)");
}

// Its clients are on this machine, and file permissions say who they are.
bool IsUnixSocket(const std::string& address) {
  if (absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:"))
    return true;
  int fd = -1, family = AF_UNSPEC;
  socklen_t size = sizeof family;
  return absl::StartsWith(address, "fd:") && absl::SimpleAtoi(address.substr(3), &fd) &&
         getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
}

}  // namespace

std::string HostPort(const std::string& host, int64_t port) {
  const bool bare_v6 = host.find(':') != std::string::npos && host[0] != '[';
  return bare_v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

std::vector<ListenerSpec> ListenersOf(const ListenConfig& config,
                                      const std::vector<std::string>& activated,
                                      const TlsSpec& tls) {
  std::vector<ListenerSpec> listeners;
  for (const std::string& address : activated.empty() ? AddressesOf(config) : activated)
    listeners.push_back({address, IsUnixSocket(address) ? TlsSpec() : tls, RolesOf(config)});
  if (config.admin_socket_path.empty()) return listeners;
  ListenerSpec admin{SocketAddress(config.admin_socket_path)};
  admin.roles.admin = OfferedTo::kAll;
  admin.for_operators = true;
  listeners.push_back(std::move(admin));
  return listeners;
}

std::vector<std::string> DescribeListeners(const ListenConfig& config) {
  std::vector<std::string> lines;
  for (const int64_t port : PortsOf(config)) {
    const bool loopback = IsLoopback(config.bind_address);
    lines.push_back(absl::StrCat(
        "listening on ", HostPort(config.bind_address, port), " (gRPC and REST, ",
        config.tls.is_on() ? "TLS" : "plain text",
        loopback && config.tls.is_on() ? "; this machine only: --bind_address=0.0.0.0 opens it)"
        : loopback
            ? "; this machine only: --bind_address=0.0.0.0 --insecure_public opens it to others)"
            : "; open to other machines)"));
  }
  if (!config.grpc_socket_path.empty())
    lines.push_back(
        absl::StrCat("listening on unix socket ", config.grpc_socket_path, " (gRPC and REST)"));
  if (!config.admin_socket_path.empty()) lines.push_back(DescribeAdmin(config));
  return lines;
}

std::vector<std::string> DescribeActivated(const ListenConfig& config,
                                           const std::vector<std::string>& bound) {
  std::vector<std::string> lines;
  lines.reserve(bound.size());
  for (const std::string& address : bound) {
    const bool admin = &address == &bound.back() && !config.admin_socket_path.empty();
    lines.push_back(admin
                        ? DescribeAdmin(config)
                        : absl::StrCat("listening on ", address,
                                       config.tls.is_on() && !absl::StartsWith(address, "unix")
                                           ? " (gRPC and REST, TLS)"
                                           : " (gRPC and REST, plain text)",
                                       ", a socket of the service manager; port, bind_address and "
                                       "grpc_socket_path have no effect"));
  }
  return lines;
}

std::vector<std::string> ActivatedListeners() {
  const int count = std::max(0, sd_listen_fds(/*unset_environment=*/1));
  std::vector<std::string> listeners(count);
  for (int i = 0; i < count; ++i) listeners[i] = absl::StrCat("fd:", SD_LISTEN_FDS_START + i);
  return listeners;
}

}  // namespace floe::server
